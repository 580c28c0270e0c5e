package config

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/session"
)

// Jobs configures background jobs.
type Jobs struct {
	Workers       int      `toml:"workers" min:"1" help:"how many jobs run at once"`
	Timeout       Duration `toml:"timeout" help:"how long one run of a job may take; 0 means no limit"`
	LoginWait     Duration `toml:"login_wait" min:"1ms" help:"how long a job waits until its owner has logged in to an upstream"`
	UpstreamWait  Duration `toml:"upstream_wait" min:"1ms" help:"how long a job waits for an upstream that cannot be reached, before its call fails"`
	KeepComplete  Duration `toml:"keep_complete" min:"1ms" help:"how long a complete job is kept after its end"`
	KeepFailed    Duration `toml:"keep_failed" min:"1ms" help:"how long a failed or cancelled job is kept after its end"`
	KeepCount     int      `toml:"keep_count" min:"1" help:"how many ended jobs are kept at most; the oldest are removed first"`
	KeepScheduled int      `toml:"keep_scheduled" min:"1" help:"how many ended jobs of one schedule are kept at most"`
}

func defaultJobs() Jobs {
	const day = 24 * time.Hour
	return Jobs{Workers: 16, LoginWait: Duration(day), UpstreamWait: Duration(15 * time.Minute), KeepComplete: Duration(7 * day), KeepFailed: Duration(30 * day), KeepCount: 5000, KeepScheduled: 50}
}

// Limits returns the limits of a job.
func (c Jobs) Limits() script.Limits {
	if c.Timeout == 0 {
		return script.Limits{Time: script.NoTimeLimit}
	}
	return script.Limits{Time: time.Duration(c.Timeout)}
}

// Sessions configures script sessions, whose variables persist between runs.
type Sessions struct {
	Idle     Duration `toml:"idle" min:"1ms" help:"how long an unused session is kept"`
	Limit    int      `toml:"limit" min:"1" help:"how many sessions one user may have"`
	Timeout  Duration `toml:"timeout" help:"how long one turn may take; 0 means scripts.timeout"`
	MemoryMB int      `toml:"memory_mb" help:"how much memory one turn may hold, in MiB; 0 means scripts.memory_mb"`
	StateMB  int      `toml:"state_mb" min:"1" help:"largest state that is saved, in MiB"`
	CacheMB  int      `toml:"cache_mb" help:"about how much memory is used to cache session states, in MiB"`
}

func defaultSessions() Sessions {
	return Sessions{Idle: Duration(7 * 24 * time.Hour), Limit: 100, StateMB: 32, CacheMB: 64}
}

// SessionOptions returns the options of script sessions.
func (c Sessions) SessionOptions() session.Options {
	return session.Options{
		Idle: time.Duration(c.Idle), Limit: c.Limit,
		Turn:  script.Limits{Time: time.Duration(c.Timeout), Memory: int64(c.MemoryMB) << 20},
		State: int64(c.StateMB) << 20, Memory: max(int64(c.CacheMB)<<20, 1),
	}
}

// Backup configures the backups that the server makes itself.
type Backup struct {
	Every  Duration `toml:"every" help:"how often the server makes a backup of itself, which it verifies by restoring it; 0 makes none; docs/operate.md"`
	Keep   int      `toml:"keep" min:"1" help:"how many of these backups are kept"`
	Folder string   `toml:"folder" trust:"needed" help:"folder of these backups; backups in the data folder when empty, but another disk is better"`
}

func (c Backup) check() error {
	if c.Every > 0 && c.Every < Duration(time.Minute) {
		return fault.New(fault.Config, "backup.every: %s is too short", c.Every).WithHint("such as 1h; 0 makes no backups")
	}
	return nil
}
