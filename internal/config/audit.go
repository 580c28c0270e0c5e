package config

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Audit configures the audit log.
type Audit struct {
	Enabled bool                `toml:"enabled" help:"write an audit log of calls; docs/audit.md"`
	Keep    Duration            `toml:"keep" help:"how long entries are stored; 0 means forever"`
	Orgs    map[string]Duration `toml:"keep_orgs" help:"how long entries of single organisations are stored, instead of keep"`
	OTLP    bool                `toml:"otlp" help:"send every entry to the collector of telemetry.otlp_endpoint, as a log record"`
	Failure string              `toml:"on_failure" help:"while entries cannot be written, because the disk is full for example: refuse calls of tools that may change something, or continue; docs/audit.md"`
}

// The values of audit.on_failure.
const (
	AuditRefuse   = "refuse"
	AuditContinue = "continue"
)

func defaultAudit() Audit {
	return Audit{Enabled: true, Keep: Duration(30 * 24 * time.Hour), Failure: AuditRefuse}
}

func (c Audit) check() error {
	if c.Keep < 0 {
		return fault.New(fault.Config, "audit.keep: must not be negative").WithHint("such as 720h, or 0 for no limit")
	}
	for org, keep := range c.Orgs {
		if keep < 0 {
			return fault.New(fault.Config, "audit.keep_orgs.%s: must not be negative", org).WithHint("such as 720h, or 0 for no limit")
		}
	}
	return nil
}

// KeepOrgs is how long entries of single organisations are stored.
func (c Audit) KeepOrgs() map[string]time.Duration {
	keep := make(map[string]time.Duration, len(c.Orgs))
	for org, d := range c.Orgs {
		keep[org] = time.Duration(d)
	}
	return keep
}
