package job

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// loginRetry is how often a call is tried again without a notification of a login.
const loginRetry = time.Minute

// loginHandler repeats calls that need a login of the job's owner once there is one. The job
// waits meanwhile. A call that was refused for that reason did nothing, so that it may be
// repeated, also by the next process.
type loginHandler struct {
	then    host.Handler
	journal *host.Journal
	queue   *Queue
	job     Job
	live    *liveJob
	held    *bool // the job has a place in the queue

	mu   sync.Mutex // held while the job waits
	late error      // the outcome of a call for which nobody logged in
}

// Handle waits where the effect needs a login.
func (h *loginHandler) Handle(ctx context.Context, e host.Effect, live func(context.Context) ([]host.Value, error)) ([]host.Value, error) {
	values, err := h.then.Handle(ctx, e, live)
	if fault.CodeOf(err) != fault.NeedsAuth || e.Kind == host.Nested { // the effects of a nested script have waited
		return values, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	deadline := h.queue.options.Clock.Now().Add(h.queue.options.LoginWait)
	if err := h.pause(ctx, err, deadline); err != nil {
		return nil, err
	}
	woke, stop := h.listen(ctx)
	defer stop()
	for fault.CodeOf(err) == fault.NeedsAuth {
		if waitErr := h.journal.While(ctx, e, func(ctx context.Context) error { return h.wait(ctx, woke, deadline) }); waitErr != nil {
			return nil, waitErr
		}
		if h.queue.options.Clock.Now().Before(deadline) {
			values, err = h.then.Handle(ctx, e, live)
			continue
		}
		h.late = h.tooLate(err)
		values, err = h.then.Handle(ctx, e, func(context.Context) ([]host.Value, error) { return nil, h.late })
	}
	if problem := h.journal.While(ctx, e, h.resume); problem != nil {
		return nil, problem
	}
	return values, err
}

// tooLate is the outcome of a call for which nobody logged in.
func (h *loginHandler) tooLate(why error) error {
	return fault.New(fault.Denied, "%s, and nobody logged in within %v", fault.From(why).Error(), h.queue.options.LoginWait).
		WithHint("%s; then start the job again", fault.HintOf(why))
}

// pause stores that the job waits, tells its owner, and gives its place in the queue away.
func (h *loginHandler) pause(ctx context.Context, why error, deadline time.Time) error {
	q := h.queue
	if err := q.persist(ctx, func() error { return q.storeState(ctx, h.job.ID, Waiting) }); err != nil {
		return err
	}
	h.live.explain("waits for a login: " + fault.HintOf(why))
	q.options.Events.PublishFor(h.job.owner, NeedsLogin{
		ID: h.job.ID, Name: h.job.Name, Creator: h.job.Creator, Reason: fault.From(why).Error(), Hint: fault.HintOf(why), Until: deadline.UTC(),
	})
	if *h.held {
		q.turns.give(h.job.Creator)
		*h.held = false
	}
	return nil
}

// listen signals woke when somebody has logged in somewhere.
func (h *loginHandler) listen(ctx context.Context) (woke chan struct{}, stop func()) {
	woke = make(chan struct{}, 1)
	if h.queue.options.LoginTopic == "" {
		return woke, func() {}
	}
	listening, cancel := context.WithCancel(ctx)
	var listener sync.WaitGroup
	listener.Go(func() {
		_ = h.queue.db.Listen(listening, h.queue.options.LoginTopic, func(db.Notification) { signal(woke) }) // it ends with ctx
	})
	return woke, func() {
		cancel()
		listener.Wait()
	}
}

func signal(woke chan<- struct{}) {
	select {
	case woke <- struct{}{}:
	default: // signalled already
	}
}

// wait returns after a login, after a while, or at the deadline.
func (h *loginHandler) wait(ctx context.Context, woke chan struct{}, deadline time.Time) error {
	clock := h.queue.options.Clock
	defer clock.AfterFunc(min(loginRetry, deadline.Sub(clock.Now())), func() { signal(woke) })()
	select {
	case <-woke:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resume gets the job a place in the queue again.
func (h *loginHandler) resume(ctx context.Context) error {
	q := h.queue
	if !q.unlimited(h.job) {
		if err := q.turns.take(ctx, h.job.Creator, h.job.Priority); err != nil {
			return err
		}
		*h.held = true
	}
	h.live.explain("")
	return q.persist(ctx, func() error { return q.storeState(ctx, h.job.ID, Running) })
}

// pauseSchedule pauses the schedule of a job for which nobody logged in.
func (h *loginHandler) pauseSchedule(ctx context.Context) {
	h.mu.Lock()
	late := h.late
	h.mu.Unlock()
	if late == nil || h.job.Schedule == "" {
		return
	}
	if err := h.queue.retire(ctx, h.job.Schedule, late); err != nil {
		h.queue.options.Log.ErrorContext(ctx, "schedule not paused", "schedule", h.job.Schedule, "error", err)
	}
}

// withoutRefusals leaves out calls that were refused because a login was needed: the next
// run makes them again.
func withoutRefusals(steps []host.Step) []host.Step {
	return slices.DeleteFunc(steps, func(s host.Step) bool {
		return s.Done && s.Err != nil && s.Err.Code == fault.NeedsAuth && !s.Nested()
	})
}

// NeedsLogin is published when a job waits until its owner has logged in to an upstream.
type NeedsLogin struct {
	ID      string    `json:"job_id"`
	Name    string    `json:"name,omitempty"`
	Creator string    `json:"creator,omitempty"`
	Reason  string    `json:"reason"`
	Hint    string    `json:"hint,omitempty"` // with the link to log in at
	Until   time.Time `json:"until"`
}

// EventType is "job.needs_auth".
func (NeedsLogin) EventType() string { return "job.needs_auth" }

// EventKey is the job's id.
func (e NeedsLogin) EventKey() string { return e.ID }
