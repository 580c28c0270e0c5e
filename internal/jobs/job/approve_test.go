package job_test

import (
	"context"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
)

// approvalsFake requires approval of "stage.write" of anything that is not allowed yet.
// Its decisions survive restarts of the queue.
type approvalsFake struct {
	mu      sync.Mutex
	said    map[string]host.Decision // decisions, by what is written
	asked   []host.Paused
	decided chan struct{} // closed and replaced at each decision

	beforePause func(what string) // called when an effect is found undecided; may be nil
}

func newApprovalsFake() *approvalsFake {
	return &approvalsFake{said: map[string]host.Decision{}, decided: make(chan struct{})}
}

func (d *approvalsFake) Approver(context.Context, host.RunInfo, []host.Step) (host.Approver, error) {
	return (*approverFake)(d), nil
}

type approverFake approvalsFake

func (c *approverFake) Decide(_ context.Context, e host.Effect) (host.Decision, error) {
	what := e.Args[0].(string)
	c.mu.Lock()
	verdict, known := c.said[what]
	c.mu.Unlock()
	if known || e.Name != "stage.write" {
		return verdict, nil
	}
	if c.beforePause != nil {
		c.beforePause(what)
	}
	return host.Ask, nil
}

func (d *approvalsFake) Ask(_ context.Context, p host.Paused) (host.Pending, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, p)
	return host.Pending{ID: p.Effect.Args[0].(string)}, nil
}

func (d *approvalsFake) Answer(_ context.Context, id string, answer host.Answer) error {
	verdict := host.Deny
	if answer.Allow {
		verdict = host.Allow
	}
	d.say(id, verdict)
	return nil
}

func (d *approvalsFake) Asked(_ context.Context, run string) (host.Pending, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.asked {
		what := p.Effect.Args[0].(string)
		if _, known := d.said[what]; p.Key == run && !known {
			return host.Pending{ID: what}, true, nil
		}
	}
	return host.Pending{}, false, nil
}

func (d *approvalsFake) Await(ctx context.Context, id string) error {
	for {
		d.mu.Lock()
		_, known := d.said[id]
		decided := d.decided
		d.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-decided:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *approvalsFake) Withdraw(_ context.Context, run string) error {
	d.say("withdrawn "+run, host.Deny)
	return nil
}

func (d *approvalsFake) say(what string, verdict host.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said[what] = verdict
	close(d.decided)
	d.decided = make(chan struct{})
}

// withApprovals returns the options of a queue with one worker, who approves there, and the
// events of jobs that wait.
func withApprovals() (job.Options, *approvalsFake, *event.Subscription) {
	boss, bus := newApprovalsFake(), event.New(event.BusOptions{})
	return job.Options{Workers: 1, Approvals: boss, Events: bus}, boss, bus.Subscribe(event.Options{Types: []string{"job.paused"}})
}

// waiting waits until a job waits for approval.
func waiting(t *testing.T, events *event.Subscription) {
	t.Helper()
	for {
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == "job.paused" {
			return
		}
	}
}

// A job that waits for approval gives its place to others, waits across a restart, and
// continues without repeating an effect.
func TestAJobWaitsForApproval(t *testing.T) {
	t.Parallel()
	d, s := database(t), newStage()
	options, boss, events := withApprovals()
	q := open(t, d, s, options)
	id := submit(t, q, job.Spec{Source: "say:hello repeat:1 write:pay repeat:2 write:more read:3"})
	waiting(t, events)
	if j, err := q.Status(t.Context(), id); err != nil || j.State != job.Waiting {
		t.Errorf("%s, %v", j.State, err)
	}
	other := submit(t, q, job.Spec{Source: "repeat:1"}) // the only worker is free for it
	if j := await(t, q, other); j.State != job.Complete {
		t.Errorf("the other is %s", j.State)
	}
	first := boss.asked[0]
	if got := host.PlanText(first.Plan); got != "1. would stage.write \"pay\"\n2. would stage.repeat \"2\"\n3. would stage.write \"more\"" || !first.Complete || first.Key != "job:"+id || first.Output[0].Text != "hello" {
		t.Errorf("asked about %s: %+v", got, first)
	}
	shut(t, q)

	q = open(t, d, s, options)
	waiting(t, events)
	boss.say("pay", host.Allow)
	waiting(t, events)
	boss.say("more", host.Deny)
	j := await(t, q, id)
	if j.State != job.Failed || j.Error.Message != "stage.write was not approved" {
		t.Errorf("%s %+v", j.State, j.Error)
	}
	for word, want := range map[string]int{"repeat:1": 1, "write:pay": 1, "repeat:2": 1, "write:more": 0} {
		if got := s.times(id, word); got != want {
			t.Errorf("%s was done %d times", word, got)
		}
	}
	steps, err := q.Journal(t.Context(), id)
	if err != nil || len(steps) != 4 || steps[3].Err == nil {
		t.Errorf("journal %v, %v", steps, err)
	}
	shut(t, q)
}

func TestAJobThatWaitsCanBeCancelled(t *testing.T) {
	t.Parallel()
	s := newStage()
	options, boss, events := withApprovals()
	q := open(t, database(t), s, options)
	id := submit(t, q, job.Spec{Source: "write:pay"})
	waiting(t, events)
	if done, err := q.Cancel(t.Context(), id); !done || err != nil {
		t.Errorf("cancelled %t, %v", done, err)
	}
	if j := await(t, q, id); j.State != job.Cancelled || s.times(id, "write:pay") > 0 {
		t.Errorf("%s", j.State)
	}
	shut(t, q)
	if _, withdrawn := boss.said["withdrawn job:"+id]; !withdrawn {
		t.Error("the question was not withdrawn")
	}
}

// A decision that arrives while the job of a stopped server starts again counts: nobody is
// asked twice.
func TestADecisionDuringARestartCounts(t *testing.T) {
	t.Parallel()
	d, s := database(t), newStage()
	options, boss, events := withApprovals()
	q := open(t, d, s, options)
	id := submit(t, q, job.Spec{Source: "repeat:1 write:pay"})
	waiting(t, events)
	shut(t, q)

	boss.beforePause = func(what string) { boss.say(what, host.Allow) }
	q = open(t, d, s, options)
	if j := await(t, q, id); j.State != job.Complete || s.times(id, "write:pay") != 1 {
		t.Errorf("%s %+v, written %d times", j.State, j.Error, s.times(id, "write:pay"))
	}
	if len(boss.asked) != 1 {
		t.Errorf("asked %d times", len(boss.asked))
	}
	shut(t, q)
}
