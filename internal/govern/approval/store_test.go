package approval_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// fixture is a database with several stores, like several processes have.
type fixture struct {
	db   *db.DB
	time *clock.Virtual
	bus  *event.Bus
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := dbtest.Open(t, dbtest.Fresh(t))
	bus := event.New(event.BusOptions{})
	t.Cleanup(bus.Close)
	return &fixture{d, clock.NewVirtual(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)), bus}
}

// open opens a store whose policy requires approval for everything.
func (b *fixture) open(t *testing.T) *approval.Store {
	t.Helper()
	o, err := approval.Open(t.Context(), b.db, approval.Options{
		Policy: approval.Policy{Default: approval.Writes}, Expire: time.Hour, Keep: 24 * time.Hour, Events: b.bus, Clock: b.time,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// watch runs Watch until the end of the test, and returns the runs to take over.
func (b *fixture) watch(t *testing.T, o *approval.Store) <-chan approval.Approval {
	t.Helper()
	found := make(chan approval.Approval, 10)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Watch(ctx, func(_ context.Context, a approval.Approval) { found <- a })
	}()
	t.Cleanup(func() { stop(); <-done })
	b.looked(t, 1)
	return found
}

// looked waits until so many stores have run their checks and wait for the next time.
func (b *fixture) looked(t *testing.T, stores int) {
	t.Helper()
	if err := b.time.AwaitSleepers(t.Context(), stores); err != nil {
		t.Fatal(err)
	}
}

// pay is an effect, and a run that paused at it.
func pay(to string) host.Effect {
	return host.Effect{Seq: 1, Name: "mcp.call", Kind: host.Write, Args: []host.Value{"bank", "pay", to}}
}

func paused(run, owner, to string) host.Paused {
	e := pay(to)
	return host.Paused{
		RunInfo: host.RunInfo{Key: run, Owner: owner, Name: "script", Hash: "hash-of-" + run}, Effect: e,
		Plan: []host.Planned{{Action: "call bank.pay", Digest: e.Digest()}}, Certain: true, Complete: true,
		Output: []host.OutputLine{{Stream: "stdout", Text: "so far"}}, ResumeState: []byte("kept"),
	}
}

func ask(t *testing.T, o *approval.Store, p host.Paused) string {
	t.Helper()
	pending, err := o.Ask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return pending.ID
}

func decide(t *testing.T, o *approval.Store, id string, answer host.Answer) approval.Approval {
	t.Helper()
	a, err := o.Decide(t.Context(), "", id, answer)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func get(t *testing.T, o *approval.Store, id string) approval.Approval {
	t.Helper()
	a, err := o.Get(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// verdict returns the decision about an effect of a run.
func verdict(t *testing.T, o *approval.Store, run string, e host.Effect, past ...host.Step) host.Decision {
	t.Helper()
	judge, err := o.Approver(t.Context(), host.RunInfo{Key: run, Hash: "hash-of-" + run}, past)
	if err != nil {
		t.Fatal(err)
	}
	v, err := judge.Decide(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("error %v, want %s", err, code)
	}
}

func TestRequestsAreStoredUnchanged(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	events := b.bus.Subscribe(event.Options{Types: []string{"approval.*"}})
	defer events.Close()
	o := b.open(t)
	id := ask(t, o, paused("run:1", "", "ann"))
	if again := ask(t, o, paused("run:1", "", "ann")); again != id {
		t.Errorf("asked twice, as %s and %s", id, again)
	}
	a := get(t, b.open(t), id) // another process
	if a.State != approval.Pending || a.Subject != "bank.pay" || a.Space != "bank" || !a.Certain || !a.Complete || string(a.Resume) != "kept" ||
		len(a.Plan) != 1 || a.Plan[0].Digest != pay("ann").Digest() || len(a.Output) != 1 || a.Expires.Sub(a.Created) != time.Hour || a.Job() != "" {
		t.Errorf("stored as %+v", a)
	}
	decide(t, o, id, host.Answer{Allow: true, By: "bob"})
	if a = get(t, o, id); a.State != approval.Allowed || a.By != "the owner of the machine, with bob" || a.Decided.IsZero() {
		t.Errorf("decided as %+v", a)
	}
	for _, want := range []string{"approval.requested", "approval.settled"} {
		if e, err := events.Next(t.Context()); err != nil || e.Type != want {
			t.Errorf("received %+v, %v, want %s", e, err, want)
		}
	}
}

func TestInvalidDecisions(t *testing.T) {
	t.Parallel()
	o := newFixture(t).open(t)
	id := ask(t, o, paused("run:1", "ann", "x"))
	_, err := o.Decide(t.Context(), "bob", id, host.Answer{Allow: true}) // bob may neither decide it nor see it
	wantCode(t, err, fault.NotFound)
	_, err = o.Decide(t.Context(), "ann", id, host.Answer{Allow: true, Remember: "for ever"})
	wantCode(t, err, fault.InvalidParams)
	_, err = o.Decide(t.Context(), "ann", "a-none", host.Answer{})
	wantCode(t, err, fault.NotFound)
	if list, err := o.List(t.Context(), "bob", "", 10); err != nil || len(list) != 0 {
		t.Errorf("bob sees %+v, %v", list, err)
	}
	list, err := o.List(t.Context(), "ann", approval.Pending, 10)
	if err != nil || len(list) != 1 || list[0].State != approval.Pending {
		t.Errorf("ann sees %+v, %v", list, err)
	}
	if err := o.Answer(t.Context(), id, host.Answer{}); err != nil {
		t.Fatal(err)
	}
	_, err = o.Decide(t.Context(), "ann", id, host.Answer{Allow: true}) // a denial is final
	wantCode(t, err, fault.Conflict)
	if !strings.Contains(err.Error(), "denied already") || verdict(t, o, "run:1", pay("x")) != host.Deny {
		t.Errorf("after all: %v", err)
	}
}

// TestADecisionIsUsedUp checks that a decision allows each entry of the plan once,
// less the steps in the journal.
func TestADecisionIsUsedUp(t *testing.T) {
	t.Parallel()
	o := newFixture(t).open(t)
	decide(t, o, ask(t, o, paused("run:1", "", "ann")), host.Answer{Allow: true})
	done := host.Step{Seq: 1, Name: "mcp.call", Kind: host.Write, Args: pay("ann").Args, Done: true}
	for _, c := range []struct {
		what string
		got  host.Decision
		want host.Decision
	}{
		{"as planned", verdict(t, o, "run:1", pay("ann")), host.Allow},
		{"something else", verdict(t, o, "run:1", pay("bob")), host.Ask},
		{"another run", verdict(t, o, "run:2", pay("ann")), host.Ask},
		{"once more than planned", verdict(t, o, "run:1", pay("ann"), done), host.Ask},
		{"only a look", verdict(t, o, "run:1", host.Effect{Name: "fs.read", Kind: host.Read}), host.Allow},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	judge, err := o.Approver(t.Context(), host.RunInfo{Key: "run:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []host.Decision{host.Allow, host.Ask} {
		if v, err := judge.Decide(t.Context(), pay("ann")); err != nil || v != want {
			t.Errorf("%v, %v, want %v", v, err, want)
		}
	}
}

func TestRememberedDecisions(t *testing.T) {
	t.Parallel()
	other := host.Effect{Name: "mcp.call", Kind: host.Write, Args: []host.Value{"bank", "lend", "ann"}}
	for scope, want := range map[string][3]host.Decision{ // the tool in another run, its namespace, the same script
		"":                 {host.Ask, host.Ask, host.Ask},
		approval.Tool:      {host.Allow, host.Ask, host.Ask},
		approval.Namespace: {host.Allow, host.Allow, host.Allow},
		approval.Script:    {host.Ask, host.Ask, host.Allow},
	} {
		o := newFixture(t).open(t)
		decide(t, o, ask(t, o, paused("run:1", "", "ann")), host.Answer{Allow: true, Remember: scope})
		got := [3]host.Decision{verdict(t, o, "run:2", pay("x")), verdict(t, o, "run:2", other), verdict(t, o, "run:1", other)}
		if got != want {
			t.Errorf("%q: %v, want %v", scope, got, want)
		}
	}
}

func TestDenyTakesPrecedenceUntilForgotten(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	o := b.open(t)
	decide(t, o, ask(t, o, paused("run:1", "", "ann")), host.Answer{Allow: true, Remember: approval.Namespace})
	b.time.Advance(time.Second)
	decide(t, o, ask(t, o, paused("run:2", "", "ann")), host.Answer{Remember: approval.Tool, By: "ann"})
	if v := verdict(t, o, "run:3", pay("x")); v != host.Deny {
		t.Errorf("with both: %v", v)
	}
	rules, err := o.Rules(t.Context())
	if err != nil || len(rules) != 2 || rules[1].Scope != approval.Tool || rules[1].Subject != "bank.pay" || rules[1].Allow || rules[1].By != "the owner of the machine, with ann" {
		t.Fatalf("rules %+v, %v", rules, err)
	}
	if err := o.Forget(t.Context(), rules[1].ID); err != nil {
		t.Fatal(err)
	}
	if v := verdict(t, b.open(t), "run:3", pay("x")); v != host.Allow { // in every process
		t.Errorf("with the yes alone: %v", v)
	}
	wantCode(t, o.Forget(t.Context(), rules[1].ID), fault.NotFound)
}

// TestRequestsExpire checks that a request without a decision is denied and its run
// notified, and that old decisions are deleted.
func TestRequestsExpire(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	o := b.open(t)
	found := b.watch(t, o)
	id := ask(t, o, paused("run:1", "", "ann"))
	waited := make(chan error, 1)
	go func() { waited <- o.Await(context.Background(), id) }()
	b.time.Advance(time.Hour - time.Second)
	b.looked(t, 1)
	if a := get(t, o, id); a.State != approval.Pending {
		t.Fatalf("too early: %+v", a)
	}
	b.time.Advance(2 * time.Second)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if a := <-found; a.ID != id || a.State != approval.Denied || a.By != "timeout" || string(a.Resume) != "kept" {
		t.Errorf("to go on with: %+v", a)
	}
	if v := verdict(t, o, "run:1", pay("ann")); v != host.Deny {
		t.Errorf("judged %v", v)
	}
	b.looked(t, 1)
	b.time.Advance(25 * time.Hour)
	b.looked(t, 1)
	b.time.Advance(time.Hour) // Watch may have run during those hours
	b.looked(t, 1)
	_, err := o.Get(t.Context(), "", id)
	wantCode(t, err, fault.NotFound)
}

func TestWithdrawnRequests(t *testing.T) {
	t.Parallel()
	o := newFixture(t).open(t)
	p := paused("job:7", "", "ann")
	p.ResumeState = nil
	id := ask(t, o, p)
	waited := make(chan error, 1)
	go func() { waited <- o.Await(context.Background(), id) }()
	if err := o.Withdraw(t.Context(), "job:7"); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if a := get(t, o, id); a.State != approval.Withdrawn || a.Job() != "7" {
		t.Errorf("withdrawn: %+v", a)
	}
	if v := verdict(t, o, "job:7", pay("ann")); v != host.Ask {
		t.Errorf("without a decision: %v", v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Await(ctx, ask(t, o, p)); err == nil {
		t.Error("it waits although no run does")
	}
}

// TestDecidedElsewhere checks that a waiting caller is notified of a decision of
// another process.
func TestDecidedElsewhere(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	here, there := b.open(t), b.open(t)
	b.watch(t, here)
	id := ask(t, here, paused("run:1", "", "ann"))
	waited := make(chan error, 1)
	go func() { waited <- here.Await(context.Background(), id) }()
	decide(t, there, id, host.Answer{Allow: true})
	b.time.Advance(5 * time.Second)
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	o := b.open(t)
	for _, idle := range []approval.Policy{{}, {Default: approval.Never}, {Rules: map[string]approval.Mode{"git": approval.Never}}} {
		o.SetPolicy(idle)
		if judge, err := o.Approver(t.Context(), host.RunInfo{}, nil); err != nil || judge != nil {
			t.Errorf("%+v: judged by %v, %v", idle, judge, err)
		}
	}
	o.SetPolicy(approval.Policy{Default: approval.Never, Rules: map[string]approval.Mode{
		"bank": approval.Writes, "bank.pay": approval.Never, "fs": approval.All, "fs.stat": approval.Writes,
	}})
	lend := host.Effect{Name: "mcp.call", Kind: host.Idempotent, Args: []host.Value{"bank", "lend", "x"}}
	for _, c := range []struct {
		effect host.Effect
		want   host.Decision
	}{
		{pay("ann"), host.Allow},
		{lend, host.Ask},
		{host.Effect{Name: "fs.read", Kind: host.Read}, host.Ask},
		{host.Effect{Name: "fs.stat", Kind: host.Read}, host.Allow},
		{host.Effect{Name: "http.post", Kind: host.Write}, host.Allow},
		{host.Effect{Name: "mcp.tools", Kind: host.Read}, host.Allow},
	} {
		if v := verdict(t, o, "run:1", c.effect); v != c.want {
			t.Errorf("%s %v: %v, want %v", c.effect.Name, c.effect.Args, v, c.want)
		}
	}
}
