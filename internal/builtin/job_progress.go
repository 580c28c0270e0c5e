package builtin

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
)

// pollReport passes the progress of jobs to the client that waits for them. The progress is
// the number of jobs: half of one job is 0.5. It never decreases.
type pollReport struct {
	caller *tool.Caller
	ids    []string

	mu        sync.Mutex
	fractions map[string]float64 // by the job's id
	last      float64
}

func newPollReport(caller *tool.Caller, ids []string) *pollReport {
	return &pollReport{caller: caller, ids: ids, fractions: make(map[string]float64, len(ids))}
}

// watch reports what the jobs report, until stop is called.
func (r *pollReport) watch(ctx context.Context, q JobQueue) (stop func()) {
	if r.caller == nil || r.caller.Progress == nil {
		return func() {}
	}
	var stops []func()
	for _, id := range r.ids {
		stops = append(stops, q.Watch(ctx, id, func(fraction float64, message string) { r.job(id, fraction, message) }))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// job reports the progress of one job.
func (r *pollReport) job(id string, fraction float64, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fractions[id] = fraction
	r.send(message)
}

// waiting reports that jobs have not ended yet, so that the client does not time out.
func (r *pollReport) waiting(done []job.Job, pending []string) {
	if r.caller == nil || r.caller.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range done {
		r.fractions[done[i].ID] = 1
	}
	r.send(count(len(pending), "job") + " not finished")
}

// send sends the sum of all jobs; mu is held.
func (r *pollReport) send(message string) {
	sum := 0.0
	for _, fraction := range r.fractions {
		sum += fraction
	}
	if sum <= r.last {
		sum = r.last + 1e-6 // clients may ignore a report without progress
	}
	r.last = min(sum, float64(len(r.ids)))
	r.caller.Progress(tool.Progress{Progress: r.last, Total: float64(len(r.ids)), Message: message})
}
