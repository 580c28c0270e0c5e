package config

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Jobs configures background jobs.
type Jobs struct {
	Workers       int      `toml:"workers" help:"how many jobs run at once"`
	Timeout       Duration `toml:"timeout" help:"how long one run of a job may take; 0 means no limit"`
	LoginWait     Duration `toml:"login_wait" help:"how long a job waits until its owner has logged in to an upstream"`
	KeepComplete  Duration `toml:"keep_complete" help:"how long a complete job is kept after its end"`
	KeepFailed    Duration `toml:"keep_failed" help:"how long a failed or cancelled job is kept after its end"`
	KeepCount     int      `toml:"keep_count" help:"how many ended jobs are kept at most; the oldest are removed first"`
	KeepScheduled int      `toml:"keep_scheduled" help:"how many ended jobs of one schedule are kept at most"`
}

func defaultJobs() Jobs {
	const day = 24 * time.Hour
	return Jobs{Workers: 16, LoginWait: Duration(day), KeepComplete: Duration(7 * day), KeepFailed: Duration(30 * day), KeepCount: 5000, KeepScheduled: 50}
}

// Limits returns the limits of a job.
func (c Jobs) Limits() script.Limits {
	if c.Timeout == 0 {
		return script.Limits{Time: script.NoTimeLimit}
	}
	return script.Limits{Time: time.Duration(c.Timeout)}
}

func (c Jobs) check() error {
	switch {
	case c.Workers < 1:
		return fault.New(fault.Config, "jobs.workers: %d is too small", c.Workers).WithHint("use 1 or more")
	case c.Timeout < 0:
		return fault.New(fault.Config, "jobs.timeout: cannot be negative").WithHint("such as 1h; 0 means no limit")
	case c.LoginWait <= 0:
		return fault.New(fault.Config, "jobs.login_wait must be greater than zero").WithHint("such as 24h")
	case c.KeepComplete <= 0 || c.KeepFailed <= 0:
		return fault.New(fault.Config, "jobs: keep_complete and keep_failed must be greater than zero").
			WithHint("such as 5m or 720h")
	case c.KeepCount < 1 || c.KeepScheduled < 1:
		return fault.New(fault.Config, "jobs: keep_count and keep_scheduled must be 1 or more")
	}
	return nil
}
