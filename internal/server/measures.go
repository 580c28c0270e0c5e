package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/ui/health"
)

// measure adds the instruments about what an operator must look after: backups, the audit log
// and the certificate.
func (srv *Server) measure() error {
	meter := srv.telemetry.Meter("operation")
	var failed []error
	gauge := func(name, about string, read func() (int64, bool)) {
		_, err := meter.Int64ObservableGauge(name, metric.WithDescription(about),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				if value, known := read(); known {
					o.Observe(value)
				}
				return nil
			}))
		failed = append(failed, err)
	}
	if srv.config.Backup.Every > 0 {
		gauge("luanette.backup.failed", "1 if the latest backup of backup.every was not made, otherwise 0", func() (int64, bool) {
			return map[bool]int64{true: 1}[srv.backupFailed() != ""], true
		})
		gauge("luanette.backup.overdue", "seconds since the next backup of backup.every should have been made; 0 if none is due", func() (int64, bool) {
			return int64(max(time.Since(srv.backupDue()), 0).Seconds()), true
		})
	}
	gauge("luanette.audit.waiting", "audit entries that are not in the database yet", func() (int64, bool) { return srv.audit.Waiting() })
	gauge("luanette.certificate.expiry", "when the certificate for HTTPS ends, in seconds since 1970", func() (int64, bool) {
		end, err := certificateEnd(srv.config.TLSCert, srv.config.TLSKey)
		return end.Unix(), err == nil
	})
	return errors.Join(failed...)
}

// backupDue is when the next backup should be made.
func (srv *Server) backupDue() time.Time {
	last := srv.started
	if info, err := os.Stat(backup.Latest(BackupFolder(srv.config))); err == nil {
		last = info.ModTime()
	}
	return last.Add(time.Duration(srv.config.Backup.Every))
}

// errNoCertificate says that the server does not speak HTTPS itself.
var errNoCertificate = errors.New("there is no certificate")

// certificateEnd reads when the certificate of the files ends.
func certificateEnd(certFile, keyFile string) (time.Time, error) {
	if certFile == "" {
		return time.Time{}, errNoCertificate
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return time.Time{}, err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return time.Time{}, err
	}
	return leaf.NotAfter, nil
}

// operation is what an operator must look after, for /health.
func (srv *Server) operation() health.Operation {
	o := health.Operation{BackupFailed: srv.backupFailed()}
	if info, err := os.Stat(backup.Latest(BackupFolder(srv.config))); err == nil && srv.config.Backup.Every > 0 {
		o.LastBackup = info.ModTime()
	}
	o.AuditWaiting, _ = srv.audit.Waiting()
	if end, err := certificateEnd(srv.config.TLSCert, srv.config.TLSKey); err == nil {
		o.CertificateEnd = end
	}
	return o
}

// countedLogins is log.RecordLogin, which also counts logins that failed.
func countedLogins(ctx context.Context, p *process, log *audit.Log) func(ctx context.Context, action, from string, allowed bool) {
	failed, err := p.telemetry.Meter("operation").Int64Counter("luanette.login.failed", metric.WithDescription("logins of browsers and people that were refused"))
	if err != nil {
		p.log.WarnContext(ctx, "failed logins are not counted", "error", err)
		return log.RecordLogin
	}
	failed.Add(ctx, 0) // a counter that appears with its first failure has no increase
	return func(ctx context.Context, action, from string, allowed bool) {
		if !allowed {
			failed.Add(ctx, 1)
		}
		log.RecordLogin(ctx, action, from, allowed)
	}
}
