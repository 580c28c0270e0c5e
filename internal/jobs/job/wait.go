package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// place is a job's place in the queue. While the job waits for somebody, another has it.
type place struct {
	queue *Queue
	job   Job
	held  bool
}

// take waits for a place. Some jobs need none.
func (p *place) take(ctx context.Context) error {
	if p.held || p.queue.unlimited(p.job) {
		return nil
	}
	err := p.queue.turns.take(ctx, p.job.Creator, p.job.Priority)
	p.held = err == nil
	return err
}

func (p *place) give() {
	if p.held {
		p.queue.turns.give(p.job.Creator)
		p.held = false
	}
}

// pause stores that the job waits, says so, and gives the place away.
func (p *place) pause(ctx context.Context, say func()) error {
	if err := p.queue.persist(ctx, func() error { return p.queue.storeState(ctx, p.job.ID, Waiting) }); err != nil {
		return err
	}
	say()
	p.give()
	return nil
}

// resume waits for a place again, and stores that the job goes on.
func (p *place) resume(ctx context.Context) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	return p.queue.persist(ctx, func() error { return p.queue.storeState(ctx, p.job.ID, Running) })
}

// Approvals decides what jobs may do, and stores the ones that wait for approval.
type Approvals interface {
	// Approver returns the approval of one run, whose journal so far is past. It is
	// nil if nothing needs approval.
	Approver(ctx context.Context, who host.RunInfo, past []host.Step) (host.Approver, error)
	// Ask stores a paused run.
	Ask(ctx context.Context, p host.Paused) (host.Pending, error)
	// Asked returns the request of a run that is not decided yet; ok is false if there
	// is none.
	Asked(ctx context.Context, run string) (pending host.Pending, ok bool, err error)
	// Await waits for the decision.
	Await(ctx context.Context, id string) error
	// Answer decides a request.
	Answer(ctx context.Context, id string, answer host.Answer) error
	// Withdraw removes the question of a run that has ended.
	Withdraw(ctx context.Context, run string) error
}

// approvedJournal is a job's journal with the approval of its effects.
type approvedJournal struct {
	handler  host.Handler
	approval *host.Approval // nil if nothing needs approval
	who      host.RunInfo
	asked    host.Pending // the request of an earlier attempt that was open when this one began; ID "" if none was
}

// withApproval adds the approval of effects to a job's journal, if any need it.
func (q *Queue) withApproval(ctx context.Context, j Job, past []host.Step, journal host.Handler) (approvedJournal, error) {
	g := approvedJournal{handler: journal, who: runInfoOf(j)}
	if q.options.Approvals == nil {
		return g, nil
	}
	if j.resumed || g.who.AskAlways {
		// This is read before the decisions: if one arrives in between, the job finds it when
		// it waits for this request, and does not ask for the same effect twice.
		err := q.persist(ctx, func() (err error) {
			g.asked, _, err = q.options.Approvals.Asked(ctx, g.who.Key)
			return err
		})
		if err != nil {
			return g, err
		}
	}
	approver, err := q.options.Approvals.Approver(ctx, g.who, past)
	if err != nil || approver == nil {
		return g, err
	}
	g.approval = host.NewApproval(journal, approver, q.options.Tools)
	g.handler = g.approval
	return g, nil
}

// runInfoOf describes a job to those who approve its effects.
func runInfoOf(j Job) host.RunInfo {
	who := host.RunInfo{Key: "job:" + j.ID, Name: j.Name, Hash: j.Hash, AskAlways: slices.Contains(j.Tags, undoTag)}
	for _, tag := range j.Tags {
		if id, ok := strings.CutPrefix(tag, undoTag+":"); ok {
			who.Undoes = id
		}
	}
	if who.Hash == "" {
		who.Hash = cas.Sum([]byte(j.Source)).String()
	}
	if who.Name == "" {
		who.Name = "job " + j.ID
	}
	return who
}

// paused returns where the run stopped to wait for approval, or nil.
func (g approvedJournal) paused(outcome Outcome, err error) *pausedError {
	if g.approval == nil || g.approval.Paused() == nil {
		return nil
	}
	return &pausedError{host.NewPaused(g.who, g.approval, err, outcome.Output), g.asked}
}

// pausedError is the error of a run that waits for approval.
type pausedError struct {
	host.Paused
	asked host.Pending // the request to wait for; ID "" if it is still to be made
}

func (a *pausedError) Error() string { return a.Effect.DisplayName() + " waits for approval" }

// pause asks for approval, unless an earlier attempt has, and waits for the decision.
func (q *Queue) pause(ctx context.Context, j Job, why error, place *place) error {
	var paused *pausedError
	if !errors.As(why, &paused) {
		return why
	}
	pending := paused.asked
	if pending.ID == "" {
		run, err := q.asOwner(ctx, j.ID)
		if err != nil {
			return err
		}
		if pending, err = q.options.Approvals.Ask(run, paused.Paused); err != nil {
			return err
		}
	}
	return q.awaitDecision(ctx, j, Paused{Approval: pending.ID, Subject: paused.Effect.DisplayName()}, place)
}

// awaitDecision waits for a decision, without holding a place in the queue meanwhile. The
// event has the request and its subject.
func (q *Queue) awaitDecision(ctx context.Context, j Job, e Paused, place *place) error {
	run := runInfoOf(j).Key
	e.ID, e.Name, e.Creator = j.ID, j.Name, j.Creator
	err := place.pause(ctx, func() { q.options.Events.PublishFor(j.owner, e) })
	if err == nil {
		err = q.options.Approvals.Await(ctx, e.Approval)
	}
	if err != nil {
		return q.withdrawQuestion(ctx, run, err)
	}
	return place.resume(ctx)
}

// withdrawQuestion withdraws the question of a job that was cancelled.
func (q *Queue) withdrawQuestion(ctx context.Context, run string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		err = errCancelled
	}
	if errors.Is(err, errCancelled) {
		return errors.Join(err, q.options.Approvals.Withdraw(context.WithoutCancel(ctx), run))
	}
	return err
}

// storeState stores the state of an unfinished job. A job that waits has made progress, so
// its attempts are counted anew.
func (q *Queue) storeState(ctx context.Context, id string, s State) error {
	return q.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE jobs SET state = $2, attempts = 0 WHERE id = $1 AND finished = 0 AND node = $3", id, s, q.options.Node)
		if err != nil || n > 0 {
			return err
		}
		return sql.ErrNoRows
	})
}

// How often a call is tried again without a notification of a login, and while its upstream
// cannot be reached.
const (
	loginRetry    = time.Minute
	upstreamRetry = 5 * time.Second
)

// waitingHandler repeats calls that need a login of the job's owner once there is one, and
// calls that did not reach their upstream. The job waits meanwhile. Such a call did nothing,
// so that it may be repeated, also by the next process.
type waitingHandler struct {
	then    host.Handler
	journal *host.Journal
	queue   *Queue
	job     Job
	live    *liveJob
	place   *place

	mu   sync.Mutex // held while the job waits
	late error      // the outcome of a call for which nobody logged in
}

// Handle waits where the effect needs a login, or its upstream.
func (h *waitingHandler) Handle(ctx context.Context, e host.Effect, live func(context.Context) ([]host.Value, error)) ([]host.Value, error) {
	marked := func(ctx context.Context) ([]host.Value, error) {
		values, err := live(ctx)
		return values, markUnsent(err)
	}
	values, err := h.then.Handle(ctx, e, marked)
	if !isRefusal(err) || e.Kind == host.Nested { // the effects of a nested script have waited
		return values, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	woke, stop := h.listen(ctx)
	defer stop()
	var deadline time.Time
	for login := !needsLogin(err); isRefusal(err); {
		if login != needsLogin(err) { // it waits for something else now
			login, deadline = needsLogin(err), h.queue.options.Clock.Now().Add(h.limit(err))
			if problem := h.pause(ctx, err, deadline); problem != nil {
				return nil, problem
			}
		}
		if waitErr := h.journal.While(ctx, e, func(ctx context.Context) error { return h.wait(ctx, woke, err, deadline) }); waitErr != nil {
			return nil, waitErr
		}
		if h.queue.options.Clock.Now().Before(deadline) {
			values, err = h.then.Handle(ctx, e, marked)
			continue
		}
		late := h.tooLate(err)
		values, err = h.then.Handle(ctx, e, func(context.Context) ([]host.Value, error) { return nil, late })
	}
	if problem := h.journal.While(ctx, e, h.place.resume); problem != nil {
		return nil, problem
	}
	h.live.explain("")
	return values, err
}

// limit returns how long a job waits for what the call lacks.
func (h *waitingHandler) limit(why error) time.Duration {
	if needsLogin(why) {
		return h.queue.options.LoginWait
	}
	return h.queue.options.UpstreamWait
}

// tooLate is the outcome of a call for which nobody logged in, or whose upstream did not come
// back.
func (h *waitingHandler) tooLate(why error) error {
	if !needsLogin(why) {
		return fault.New(fault.Unavailable, "%s; the job waited %v for it", fault.From(why).Error(), h.limit(why)).WithHint("%s", fault.HintOf(why))
	}
	h.late = fault.New(fault.Denied, "%s, and nobody logged in within %v", fault.From(why).Error(), h.limit(why)).
		WithHint("%s; then start the job again", fault.HintOf(why))
	return h.late
}

// pause stores that the job waits, tells its owner, and gives its place in the queue away.
func (h *waitingHandler) pause(ctx context.Context, why error, deadline time.Time) error {
	return h.place.pause(ctx, func() {
		if !needsLogin(why) {
			h.live.explain("waits for an upstream: " + fault.From(why).Error())
			return
		}
		h.live.explain("waits for a login: " + fault.HintOf(why))
		h.queue.options.Events.PublishFor(h.job.owner, NeedsLogin{
			ID: h.job.ID, Name: h.job.Name, Creator: h.job.Creator, Reason: fault.From(why).Error(), Hint: fault.HintOf(why), Until: deadline.UTC(),
		})
	})
}

// listen signals woke when somebody has logged in somewhere.
func (h *waitingHandler) listen(ctx context.Context) (woke chan struct{}, stop func()) {
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
func (h *waitingHandler) wait(ctx context.Context, woke chan struct{}, why error, deadline time.Time) error {
	clock, again := h.queue.options.Clock, upstreamRetry
	if needsLogin(why) {
		again = loginRetry
	}
	defer clock.AfterFunc(min(again, deadline.Sub(clock.Now())), func() { signal(woke) })()
	select {
	case <-woke:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pauseSchedule pauses the schedule of a job for which nobody logged in.
func (h *waitingHandler) pauseSchedule(ctx context.Context) {
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

// unsentKey is the field of an error's details that says in a journal that the call did not
// reach its upstream.
const unsentKey = "unsent"

// markUnsent marks the error of a call that did not reach its upstream, so that the journal
// has it too.
func markUnsent(err error) error {
	var unsent tool.Unsent
	if fault.CodeOf(err) != fault.Unavailable || !errors.As(err, &unsent) {
		return err
	}
	marked := *fault.From(err)
	marked.Details = rawjson.Set(marked.Details, unsentKey, json.RawMessage("true"))
	return &marked
}

func isUnsent(details json.RawMessage) bool {
	_, marked := rawjson.Get(details, unsentKey)
	return marked
}

func needsLogin(err error) bool { return fault.CodeOf(err) == fault.NeedsAuth }

// isRefusal reports whether a call failed without having done anything, for a reason that can
// pass: a login is needed, or the upstream cannot be reached.
func isRefusal(err error) bool {
	return needsLogin(err) || fault.CodeOf(err) == fault.Unavailable && isUnsent(fault.From(err).Details)
}

// withoutRefusals leaves out calls that did nothing because a login was needed or their
// upstream could not be reached: the next run makes them again.
func withoutRefusals(steps []host.Step) []host.Step {
	return slices.DeleteFunc(steps, func(s host.Step) bool {
		return s.Done && s.Err != nil && isRefusal(s.Err) && !s.Nested()
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
