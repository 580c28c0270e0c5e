package host

import (
	"context"
	"encoding/json"
	"strconv"
)

// Jobs starts jobs for scripts, and tells how they ended.
type Jobs interface {
	// Start starts a job and returns its id. A second job with the same token, if that is
	// not "", is not started: the id is that of the first.
	Start(ctx context.Context, j NewJob) (id string, err error)
	// Result returns the state of a job of the same principal.
	Result(ctx context.Context, id string) (JobResult, error)
}

// NewJob is a job to start.
type NewJob struct {
	Name     string          // for people; "" means the name of the script that starts it
	Source   string          // defines main(params)
	Language string          // of the source; "" means Lua
	Params   json.RawMessage // the argument of main
	Tags     []string
	Token    string // identifies the effect that starts it; "" if nothing repeats it
}

// JobResult is the state of a job.
type JobResult struct {
	State string          // "pending", "complete", "error" or "timeout"
	Value json.RawMessage // if it is complete
	Error string          // if it has failed
}

// Token identifies the effect that ctx belongs to among all effects of all jobs. It is ""
// unless the run is a job, or part of one: only jobs repeat an effect, after a crash.
func (w *Services) Token(ctx context.Context) string {
	parent := ParentOf(ctx)
	if parent == nil || parent.job == "" {
		return ""
	}
	return parent.job + "/" + strconv.FormatInt(parent.seq, 10)
}
