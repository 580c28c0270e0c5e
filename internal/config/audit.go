package config

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Audit configures the audit log.
type Audit struct {
	Enabled bool     `toml:"enabled" help:"write an audit log of calls; docs/audit.md"`
	Keep    Duration `toml:"keep" help:"how long entries are stored; 0 means forever"`
	Failure string   `toml:"on_failure" help:"while entries cannot be written, because the disk is full for example: refuse calls of tools that may change something, or continue; docs/audit.md"`
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
	return nil
}
