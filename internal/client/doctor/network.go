package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// dialTimeout limits how long another program may take to answer.
const dialTimeout = 3 * time.Second

// address checks that the server can listen, or runs already.
func (d *doctor) address(ctx context.Context) {
	const check = "server"
	if s := d.server; s != nil {
		kind := "runs"
		if s.Daemon {
			kind = "runs in the background"
		}
		d.ok(check, "%s at %s (pid %d), %d attached clients", kind, s.URL, s.PID, s.Clients)
		if s.Version != d.Version {
			d.report(Finding{check, Warning, fmt.Sprintf("it has version %s, this program %s", s.Version, d.Version), "restart it"})
		}
		return
	}
	err := d.Config.CheckListen(ctx)
	switch {
	case err == nil:
		d.ok(check, "not running; %s is free", d.Config.Listen)
	case answersAsLuanette(ctx, d.Config.Address()):
		d.report(Finding{check, Warning, "another luanette, with another data folder, configuration or user, listens on " + d.Config.Listen, "use that one with --server " + d.Config.Address() + ", or choose another address with --listen"})
	default:
		d.failed(check, err)
	}
}

// health asks the running server whether it can serve, and what an operator must look after.
func (d *doctor) health(ctx context.Context) {
	if !d.serves() {
		return
	}
	const check = "server"
	raw, err := d.get(ctx, "/ready")
	var ready struct {
		Ready  bool
		Reason string
	}
	if json.Unmarshal(raw, &ready) != nil {
		d.failed(check, fault.Wrap(fault.Upstream, err, "ask the running server whether it is ready"))
		return
	}
	switch {
	case !ready.Ready:
		d.report(Finding{check, Problem, "not ready: " + ready.Reason, "load balancers send it nothing; its log says more"})
	case d.Server != "":
		d.ok(check, "%s is ready", d.Server)
	}
	var now operation
	if raw, err = d.get(ctx, "/health"); err == nil {
		err = json.Unmarshal(raw, &now)
	}
	if err != nil {
		d.failed(check, fault.Wrap(fault.Upstream, err, "ask the running server for its health"))
	}
	d.operation(check, now)
}

// operation is what the running server says that an operator must look after.
type operation struct {
	Problem        string
	BackupFailed   string    `json:"backup_failed"`
	AuditWaiting   int64     `json:"audit_waiting"`
	CertificateEnd time.Time `json:"certificate_end"`
}

func (d *doctor) operation(check string, health operation) {
	if health.Problem != "" {
		d.report(Finding{check, Problem, health.Problem, "its log says more"})
	}
	if health.BackupFailed != "" {
		d.report(Finding{"backups", Problem, "the server could not make the latest: " + health.BackupFailed, "repair what it says; the server tries again every few minutes"})
	}
	if end := health.CertificateEnd; d.Server != "" && !end.IsZero() && time.Until(end) < soon {
		d.report(Finding{"certificate", Warning, "expires on " + end.UTC().Format(time.DateOnly), "replace it; the server reads it again by itself"})
	}
	if health.AuditWaiting > manyEntries {
		d.report(Finding{"audit", Warning, fmt.Sprintf("%d entries wait for the database", health.AuditWaiting), "see whether the database is slow, full or away"})
	}
}

// manyEntries is how many audit entries wait only if the database does not keep up.
const manyEntries = 1000

// answersAsLuanette reports whether a server of ours is at an address.
func answersAsLuanette(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/health", http.NoBody)
	if err != nil {
		return false
	}
	// The certificate may be self-signed; nothing secret is sent.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var health struct{ Status, Version string }
	return json.NewDecoder(response.Body).Decode(&health) == nil && health.Status != "" && health.Version != ""
}

// soon is how long before its end a certificate is to be renewed.
const soon = 30 * 24 * time.Hour

// certificate checks the certificate for HTTPS, if there is one.
func (d *doctor) certificate(context.Context) {
	const check = "certificate"
	if d.Config.TLSCert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(d.Config.TLSCert, d.Config.TLSKey)
	if err != nil {
		d.report(Finding{check, Problem, err.Error(), "`luanette cert` makes a certificate with its key"})
		return
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		d.failed(check, err)
		return
	}
	until := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch left := time.Until(leaf.NotAfter); {
	case left <= 0:
		d.report(Finding{check, Problem, "expired on " + until, "replace " + d.Config.TLSCert + "; `luanette cert` makes one"})
	case time.Now().Before(leaf.NotBefore):
		d.report(Finding{check, Problem, "not valid before " + leaf.NotBefore.UTC().Format(time.DateOnly), "check the clock of this machine"})
	case left < soon:
		d.report(Finding{check, Warning, "expires on " + until, "replace " + d.Config.TLSCert + "; the server reads it again by itself"})
	default:
		d.ok(check, "valid until %s, for %s", until, strings.Join(leaf.DNSNames, ", "))
	}
}

// telemetry checks that the collector accepts connections, if one is set.
func (d *doctor) telemetry(ctx context.Context) {
	const check = "telemetry"
	endpoint := cmp.Or(d.Config.Telemetry.OTLPEndpoint, d.Env["OTEL_EXPORTER_OTLP_ENDPOINT"])
	if endpoint == "" {
		return
	}
	host := endpoint
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		host = u.Host
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
		}
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		d.report(Finding{check, Problem, fmt.Sprintf("the collector cannot be reached: %v", err), "start it, or remove telemetry.otlp_endpoint"})
		return
	}
	_ = conn.Close() // nothing was sent
	d.ok(check, "%s accepts connections", host)
}

// Years between which a clock is plausible.
const (
	firstYear = 2025
	lastYear  = 2100
)

// maxSkew is how far the clock may be from the database's: leases of nodes last seconds.
const maxSkew = 2 * time.Second

// clock checks that the time is plausible and, with Postgres, that of the database.
func (d *doctor) clock(ctx context.Context) {
	const check = "clock"
	now := time.Now()
	if year := now.Year(); year < firstYear || year > lastYear {
		d.report(Finding{check, Problem, "it is " + now.Format(time.DateOnly) + " here", "set the clock; certificates and logins fail otherwise"})
		return
	}
	if d.foreign || strings.HasPrefix(d.Config.Database, "sqlite:") {
		d.ok(check, "%s", now.Format(time.RFC3339))
		return
	}
	skew, err := d.skew(ctx)
	switch {
	case err != nil:
		d.failed(check, fault.Wrap(fault.Unavailable, err, "ask the database for the time"))
	case skew.Abs() > maxSkew:
		d.report(Finding{check, Warning, fmt.Sprintf("%s away from the database's", skew.Round(time.Millisecond)), "synchronise both machines with a time server"})
	default:
		d.ok(check, "%s, %s away from the database's", now.Format(time.RFC3339), skew.Round(time.Millisecond))
	}
}

// skew returns how far the database's clock is ahead.
func (d *doctor) skew(ctx context.Context) (skew time.Duration, err error) {
	store, err := d.Config.OpenDatabase(ctx, d.Config.SecretFinder(d.Env))
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }()
	err = store.Read(ctx, func(tx *db.Tx) error {
		var seconds float64
		before := time.Now()
		if err := tx.QueryRow(ctx, "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)").Scan(&seconds); err != nil {
			return err
		}
		middle := before.Add(time.Since(before) / 2)
		skew = time.UnixMicro(int64(seconds * 1e6)).Sub(middle)
		return nil
	})
	return skew, err
}

// upstreams reports every upstream: as the running server sees it, or after one attempt to
// connect to each, some at a time.
func (d *doctor) upstreams(ctx context.Context) {
	switch {
	case d.serves():
		d.serverUpstreams(ctx)
		return
	case d.foreign:
		return // root does not start them
	}
	specs, _, err := d.Config.UpstreamSpecs(d.Env)
	if err != nil {
		return // the check of the configuration reported it
	}
	if len(specs) == 0 && len(d.Config.WithheldUpstreams()) == 0 {
		d.report(Finding{"upstreams", Note, "none; add one with `luanette upstream add NAME URL`", ""})
	}
	findings := make([][]Finding, len(specs))
	slots := make(chan struct{}, 2*runtime.NumCPU())
	var all sync.WaitGroup
	for i := range specs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			findings[i] = d.probe(ctx, specs[i])
		})
	}
	all.Wait()
	for _, found := range findings {
		for _, finding := range found {
			d.report(finding)
		}
	}
}

// probe connects to one upstream.
func (d *doctor) probe(ctx context.Context, spec upstream.Spec) []Finding {
	prober := client.Prober{Config: d.Config, Env: d.Env, Version: d.Version, Logins: true, Log: slog.New(slog.DiscardHandler)}
	probe, err := prober.Probe(ctx, spec, d.Timeout)
	if err != nil {
		return []Finding{{"upstream " + spec.Name, Problem, err.Error(), fault.HintOf(err)}}
	}
	return upstreamFindings(probe)
}

// upstreamFindings says how an upstream does.
func upstreamFindings(probe client.Probe) (list []Finding) {
	check := "upstream " + probe.Namespace
	switch {
	case probe.NeedsLogin():
		list = append(list, Finding{check, Problem, "asks for a login", "luanette upstream login " + probe.Namespace})
	case probe.Works():
		list = append(list, Finding{check, OK, "connected, " + plural.Count(probe.Tools, "tool"), ""})
	case probe.State == string(upstream.StateAsleep):
		list = append(list, Finding{check, OK, "asleep, started by the first call", ""})
	default:
		list = append(list, Finding{check, Problem, strings.TrimPrefix(probe.State+": "+probe.Error, ": "), probe.Hint})
	}
	for _, warning := range probe.Warnings {
		list = append(list, Finding{check, Warning, warning, ""})
	}
	return list
}

// serverUpstreams asks the running server.
func (d *doctor) serverUpstreams(ctx context.Context) {
	raw, err := d.get(ctx, "/api/v1/upstreams")
	var listed adminapi.UpstreamList
	if err == nil {
		err = json.Unmarshal(raw, &listed)
	}
	if err != nil {
		d.failed("upstreams", fault.Wrap(fault.Upstream, err, "ask the running server"))
		return
	}
	if len(listed.Upstreams) == 0 {
		d.report(Finding{"upstreams", Note, "none; add one with `luanette upstream add NAME URL`", ""})
	}
	for _, u := range listed.Upstreams {
		for _, finding := range upstreamFindings(client.Probe{
			Namespace: u.Namespace, State: u.State, Tools: u.Tools, Error: u.Error, Hint: u.Hint, Warnings: u.Warnings,
		}) {
			d.report(finding)
		}
	}
}
