package config

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Jobs configures background jobs.
type Jobs struct {
	Workers      int      `toml:"workers" help:"how many jobs run at once"`
	Timeout      Duration `toml:"timeout" help:"how long one run of a job may take; 0 means scripts.timeout"`
	KeepComplete Duration `toml:"keep_complete" help:"how long a complete job is kept after its end"`
	KeepFailed   Duration `toml:"keep_failed" help:"how long a failed or cancelled job is kept after its end"`
}

func defaultJobs() Jobs {
	return Jobs{Workers: 16, KeepComplete: Duration(5 * time.Minute), KeepFailed: Duration(30 * time.Minute)}
}

func (c Jobs) check() error {
	switch {
	case c.Workers < 1:
		return fault.New(fault.Config, "jobs.workers: %d is too small", c.Workers).WithHint("use 1 or more")
	case c.Timeout < 0 || c.KeepComplete <= 0 || c.KeepFailed <= 0:
		return fault.New(fault.Config, "jobs: timeout, keep_complete and keep_failed must be greater than zero").
			WithHint("such as 5m or 720h")
	}
	return nil
}
