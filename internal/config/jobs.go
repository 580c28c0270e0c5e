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

// Sessions configures script sessions, whose variables persist between runs.
type Sessions struct {
	Idle     Duration `toml:"idle" help:"how long an unused session is kept"`
	Limit    int      `toml:"limit" help:"how many sessions one user may have"`
	Timeout  Duration `toml:"timeout" help:"how long one turn may take; 0 means scripts.timeout"`
	MemoryMB int      `toml:"memory_mb" help:"how much memory one turn may hold, in MiB; 0 means scripts.memory_mb"`
	StateMB  int      `toml:"state_mb" help:"largest state that is saved, in MiB"`
	CacheMB  int      `toml:"cache_mb" help:"about how much memory is used to cache session states, in MiB"`
}

func defaultSessions() Sessions {
	return Sessions{Idle: Duration(7 * 24 * time.Hour), Limit: 100, StateMB: 32, CacheMB: 64}
}

func (c Sessions) check() error {
	switch {
	case c.Idle <= 0:
		return fault.New(fault.Config, "sessions.idle: must be greater than zero").WithHint("such as 168h")
	case c.Limit < 1 || c.StateMB < 1:
		return fault.New(fault.Config, "sessions: limit and state_mb must be 1 or more")
	case c.Timeout < 0 || c.MemoryMB < 0 || c.CacheMB < 0:
		return fault.New(fault.Config, "sessions: timeout, memory_mb and cache_mb cannot be negative")
	}
	return nil
}

// SessionOptions returns the options of script sessions.
func (c Sessions) SessionOptions() script.SessionOptions {
	return script.SessionOptions{
		Idle: time.Duration(c.Idle), Limit: c.Limit,
		Turn:  script.Limits{Time: time.Duration(c.Timeout), Memory: int64(c.MemoryMB) << 20},
		State: int64(c.StateMB) << 20, Memory: max(int64(c.CacheMB)<<20, 1),
	}
}

// Backup configures the backups that the server makes itself.
type Backup struct {
	Every  Duration `toml:"every" help:"how often the server makes a backup of itself, which it verifies by restoring it; 0 makes none; docs/operate.md"`
	Keep   int      `toml:"keep" help:"how many of these backups are kept"`
	Folder string   `toml:"folder" trust:"needed" help:"folder of these backups; backups in the data folder when empty, but another disk is better"`
}

func (c Backup) check() error {
	switch {
	case c.Every < 0 || c.Every > 0 && c.Every < Duration(time.Minute):
		return fault.New(fault.Config, "backup.every: %s is too short", time.Duration(c.Every)).WithHint("such as 1h; 0 makes no backups")
	case c.Keep < 1:
		return fault.New(fault.Config, "backup.keep: %d is too small", c.Keep).WithHint("24 is usual")
	}
	return nil
}
