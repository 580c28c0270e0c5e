package job

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/scripting/host"
)

// liveJob is the state of an unfinished job that is not stored with it: its progress,
// its output, and the callers that wait for it.
type liveJob struct {
	mu       sync.Mutex
	fresh    *Job // as it was submitted to this process; nil if another process stored it, or it has begun
	fraction float64
	message  string
	lines    []host.OutputLine
	journal  *host.Journal // while the script runs
	waiters  []chan<- struct{}
	watchers map[*func(float64, string)]bool // receive progress

	cancelling  sync.Mutex // held while the cancellation is stored
	unpublished bool       // this node stored the cancellation and has not published the end

	// What other nodes know of the job.
	changed     bool // some of it is not stored
	restarted   bool // a new run began, so stored output is obsolete
	stored      bool // something is stored
	storedLines int  // number of stored lines
}

// enter begins to follow a job. fresh means that it was submitted just now and has no
// journal.
func (q *Queue) enter(j Job, fresh bool) {
	c := &liveJob{}
	if fresh {
		c.fresh = &j
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current[j.ID] = c
}

// begun returns the job as it was submitted, the first time it is called.
func (c *liveJob) begun() *Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.fresh
	c.fresh = nil
	return fresh
}

// leave stops following a job and wakes the callers that wait for it.
func (q *Queue) leave(id string) {
	q.mu.Lock()
	c := q.current[id]
	delete(q.current, id)
	if c != nil && c.isStored() {
		q.endedLive = append(q.endedLive, id)
	}
	q.mu.Unlock()
	if c != nil {
		c.wake()
	}
}

// finished publishes the end of a job and notifies the other nodes.
func (q *Queue) finished(ctx context.Context, j Job) {
	q.recordOutcome(context.WithoutCancel(ctx), j) // before those who wait for the job go on
	q.leave(j.ID)
	e := Finished{ID: j.ID, Name: j.Name, Creator: j.Creator, State: j.State}
	if j.Error != nil {
		e.Error = redact.Text(j.Error.Message)
	}
	if !j.Started.IsZero() {
		e.TookMS = j.Finished.Sub(j.Started).Milliseconds()
	}
	q.options.Events.PublishFor(j.owner, e)
}

// following returns the live state of an unfinished job, or nil.
func (q *Queue) following(id string) *liveJob {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.current[id]
}

// Running returns the number of unfinished jobs of this process.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.current)
}

func (c *liveJob) begin(journal *host.Journal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journal, c.lines, c.storedLines, c.restarted = journal, nil, 0, true
}

// halt stops the script at its next effect. The channel is closed when no call that
// must not be repeated is in progress; it is nil if no script runs.
func (c *liveJob) halt(cause error) (settled <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.journal == nil {
		return nil
	}
	return c.journal.Halt(cause)
}

func (c *liveJob) progress(fraction float64, message string) {
	c.mu.Lock()
	c.fraction, c.message, c.changed = fraction, message, true
	watchers := slices.Collect(maps.Keys(c.watchers))
	c.mu.Unlock()
	for _, see := range watchers {
		(*see)(fraction, message)
	}
}

// explain says why the job makes no progress.
func (c *liveJob) explain(message string) {
	c.mu.Lock()
	fraction := c.fraction
	c.mu.Unlock()
	c.progress(fraction, message)
}

// watch passes the latest progress to see, and every further one until stop is called.
func (c *liveJob) watch(see func(fraction float64, message string)) (stop func()) {
	c.mu.Lock()
	if c.watchers == nil {
		c.watchers = map[*func(float64, string)]bool{}
	}
	c.watchers[&see] = true
	fraction, message := c.fraction, c.message
	c.mu.Unlock()
	if fraction > 0 || message != "" {
		see(fraction, message)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, &see)
	}
}

func (c *liveJob) say(line host.OutputLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines, c.changed = append(c.lines, line), true
}

func (c *liveJob) isStored() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored
}

// overlay adds the live state to a stored job.
func (c *liveJob) overlay(j *Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j.Progress, j.Message, j.Output = c.fraction, c.message, slices.Clone(c.lines)
}

// await has woke signalled once, when the job ends. The caller calls stop to unregister.
func (c *liveJob) await(woke chan<- struct{}) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters = append(c.waiters, woke)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if i := slices.Index(c.waiters, woke); i >= 0 {
			c.waiters = slices.Delete(c.waiters, i, i+1)
		}
	}
}

func (c *liveJob) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, woke := range c.waiters {
		select {
		case woke <- struct{}{}:
		default: // signalled already
		}
	}
	c.waiters = nil
}
