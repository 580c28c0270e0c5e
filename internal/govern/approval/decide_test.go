package approval_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
)

// staff is people with roles, their keys, and a store that knows both.
type staff struct {
	*fixture
	t      *testing.T
	people *people.Store
	keys   *apikey.Store
	store  *approval.Store
	policy approval.Policy
	ids    map[string]string
}

// newStaff opens a store in which payments need two people with the role finance, and
// other changes somebody.
func newStaff(t *testing.T) *staff {
	t.Helper()
	of := &staff{fixture: newFixture(t), t: t, ids: map[string]string{}}
	var err error
	if of.people, err = people.Open(t.Context(), of.db, people.Options{Key: func() (secret.Text, error) { return secret.New("key"), nil }, Now: of.time.Now}); err != nil {
		t.Fatal(err)
	}
	if of.keys, err = apikey.Open(t.Context(), of.db, apikey.Options{People: of.people}); err != nil {
		t.Fatal(err)
	}
	of.policy = approval.Policy{Default: approval.Writes, Also: func(_ context.Context, e host.Effect) (approval.Demand, bool) {
		if e.DisplayName() == "bank.pay" {
			return approval.Demand{Role: "finance", Count: 2}, true
		}
		return approval.Demand{}, false
	}}
	of.store = of.node()
	for _, name := range []string{"ann", "bob", "cleo"} {
		of.signIn(name, "", "finance")
	}
	of.signIn("dan", "", "user")
	return of
}

// node opens another store on the database.
func (of *staff) node() *approval.Store {
	of.t.Helper()
	o, err := approval.Open(of.t.Context(), of.db, approval.Options{
		Policy: of.policy, Expire: time.Hour, Keep: 24 * time.Hour, Events: of.bus, Clock: of.time,
		People: of.people, Alone: func(context.Context) bool { return false },
	})
	if err != nil {
		of.t.Fatal(err)
	}
	return o
}

// signIn makes a person, or changes their roles.
func (of *staff) signIn(name, org string, roles ...string) {
	of.t.Helper()
	p, err := of.people.SignIn(of.t.Context(), people.Arrival{Identity: people.Identity{Issuer: "x", Subject: name}, Name: name, Email: name + "@example.com", Verified: name != "cleo", Roles: map[string][]string{org: roles}, Source: "x"})
	if err != nil {
		of.t.Fatal(err)
	}
	of.ids[name] = p.ID
}

// as is the context of a person who is signed in.
func (of *staff) as(name string) context.Context {
	return principal.With(of.t.Context(), principal.Principal{ID: principal.PersonPrefix + of.ids[name], Name: name, User: of.ids[name]})
}

// with is the context of a request with a key.
func (of *staff) with(token string) context.Context {
	of.t.Helper()
	who, err := of.keys.Authenticate(of.t.Context(), token)
	if err != nil {
		of.t.Fatal(err)
	}
	return principal.With(of.t.Context(), who)
}

func (of *staff) key(name, person string) (token string) {
	of.t.Helper()
	_, token, err := of.keys.Create(of.t.Context(), apikey.Key{Name: name, Rights: apikey.Rights{Scopes: []principal.Scope{principal.MCP}, Person: of.ids[person]}})
	if err != nil {
		of.t.Fatal(err)
	}
	return token
}

// ask asks for approval as somebody.
func (of *staff) ask(ctx context.Context, run, to string) string {
	of.t.Helper()
	pending, err := of.store.Ask(ctx, paused(run, "", to))
	if err != nil {
		of.t.Fatal(err)
	}
	return pending.ID
}

func (of *staff) allow(ctx context.Context, id string) (approval.Approval, error) {
	return of.store.Decide(ctx, principal.Of(ctx).ID, id, host.Answer{Allow: true, By: principal.Of(ctx).ID})
}

func (of *staff) mustAllow(ctx context.Context, id string, want approval.State) approval.Approval {
	of.t.Helper()
	a, err := of.allow(ctx, id)
	if err != nil || a.State != want {
		of.t.Fatalf("%s: %s, %v, want %s", principal.Of(ctx).Name, a.State, err, want)
	}
	return a
}

// verdictAs returns the decision about an effect of a run.
func (of *staff) verdictAs(ctx context.Context, run string, e host.Effect, past ...host.Step) host.Decision {
	of.t.Helper()
	judge, err := of.store.Approver(ctx, host.RunInfo{Key: run, Hash: "hash-of-" + run}, past)
	if err != nil {
		of.t.Fatal(err)
	}
	v, err := judge.Decide(ctx, e)
	if err != nil {
		of.t.Fatal(err)
	}
	return v
}

func admin(id, user string) principal.Principal {
	return principal.Principal{ID: id, Name: id, User: user, Scopes: []principal.Scope{principal.Admin}}
}

// TestNobodyApprovesTheirOwnRequest checks that the asker cannot allow, by whatever key,
// and can deny.
func TestNobodyApprovesTheirOwnRequest(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	policy := approval.Policy{Default: approval.Writes}
	o, err := approval.Open(t.Context(), b.db, approval.Options{Policy: policy, Events: b.bus, Clock: b.time, Alone: func(context.Context) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	as := func(p principal.Principal) context.Context { return principal.With(t.Context(), p) }
	ann, anns, bob := as(admin("key:ann", "ann")), as(admin("key:ann-2", "ann")), as(admin("key:bob", "bob"))
	decide := func(ctx context.Context, id string, answer host.Answer) error {
		_, err := o.Decide(ctx, principal.Of(ctx).ID, id, answer)
		return err
	}
	for _, asker := range []context.Context{ann, t.Context()} { // a key, and the owner of a server with keys
		asked, err := o.Ask(asker, paused("run:of-"+principal.Of(asker).ID, "", "x"))
		if err != nil || !asked.Others {
			t.Fatalf("asked: %+v, %v", asked, err)
		}
		wantCode(t, decide(asker, asked.ID, host.Answer{Allow: true}), fault.Denied)
		wantCode(t, o.Answer(asker, asked.ID, host.Answer{Allow: true}), fault.Denied) // by elicitation
		wantCode(t, decide(asker, asked.ID, host.Answer{Remember: approval.Tool}), fault.Denied)
		if asker == ann {
			wantCode(t, decide(anns, asked.ID, host.Answer{Allow: true}), fault.Denied)
		}
		if err := decide(bob, asked.ID, host.Answer{Allow: true}); err != nil {
			t.Error(err)
		}
	}
	asked, err := o.Ask(ann, paused("run:2", "", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := decide(anns, asked.ID, host.Answer{}); err != nil {
		t.Errorf("the asker cannot deny: %v", err)
	}
	policy.Own = true
	o.SetPolicy(policy)
	asked, err = o.Ask(ann, paused("run:3", "", "x"))
	if err != nil || asked.Others {
		t.Fatalf("asked: %+v, %v", asked, err)
	}
	if err := decide(ann, asked.ID, host.Answer{Allow: true}); err != nil {
		t.Errorf("with approve_own: %v", err)
	}
}

// TestRememberedForOthers checks that what somebody allowed for the future does not allow
// their own runs.
func TestRememberedForOthers(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	lend := host.Effect{Name: "mcp.call", Kind: host.Write, Args: []host.Value{"bank", "lend", "x"}}
	p := paused("run:1", "", "x")
	p.Effect, p.Plan = lend, []host.Planned{{Digest: lend.Digest()}}
	ann, bob := principal.With(t.Context(), admin("key:ann", "ann")), principal.With(t.Context(), admin("key:bob", "bob"))
	asked, err := of.store.Ask(ann, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := of.store.Decide(bob, "key:bob", asked.ID, host.Answer{Allow: true, Remember: approval.Namespace, By: "key:bob"}); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[context.Context]host.Decision{ann: host.Allow, bob: host.Ask} {
		if v := of.verdictAs(who, "run:2", lend); v != want {
			t.Errorf("a run of %s: %v, want %v", principal.Of(who).ID, v, want)
		}
	}
	if v := of.verdictAs(ann, "run:2", pay("x")); v != host.Ask { // it needs a role
		t.Errorf("what needs a role: %v", v)
	}
	rules, err := of.store.Rules(bob)
	if err != nil || len(rules) != 1 {
		t.Fatalf("%+v, %v", rules, err)
	}
	eve := principal.With(t.Context(), principal.Principal{ID: "key:eve", Org: "acme", Scopes: []principal.Scope{principal.Admin}})
	if seen, err := of.store.Rules(eve); err != nil || len(seen) > 0 {
		t.Errorf("an administrator of one organisation sees %+v, %v", seen, err)
	}
	wantCode(t, of.store.Forget(eve, rules[0].ID), fault.NotFound)
	if err := of.store.Forget(ann, rules[0].ID); err != nil { // another administrator
		t.Error(err)
	}
}

// TestTwoOfARole checks that a payment needs two different people with the role.
func TestTwoOfARole(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	events := of.bus.Subscribe(event.Options{Types: []string{"approval.agreed"}})
	defer events.Close()
	bobs := of.key("bobs", "bob")
	spoof, token, err := of.keys.Create(t.Context(), apikey.Key{Name: "spoof", Rights: apikey.Rights{Scopes: []principal.Scope{principal.MCP}, User: of.ids["cleo"]}})
	if err != nil {
		t.Fatal(err)
	}
	dan := of.as("dan")
	id := of.ask(dan, "run:1", "x")
	refused := map[string]context.Context{
		"an administrator":        principal.With(t.Context(), admin("key:root", "")),
		"the owner":               t.Context(),
		"a key that names a user": of.with(token),
		"a chat":                  principal.With(t.Context(), principal.Principal{ID: principal.PersonPrefix + of.ids["ann"], Person: "/ann", Scopes: []principal.Scope{principal.Admin}}),
		"another organisation":    principal.With(t.Context(), principal.Principal{ID: principal.PersonPrefix + of.ids["ann"], Org: "acme"}),
		"the asker":               dan,
	}
	for who, ctx := range refused {
		if _, err := of.allow(ctx, id); fault.CodeOf(err) != fault.Denied && fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s (%s): %v", who, spoof.Name, err)
		}
	}
	if a := of.mustAllow(of.as("bob"), id, approval.Pending); a.Agreed() != 1 || a.Needed != 2 || a.Role != "finance" {
		t.Errorf("after the first: %+v", a)
	}
	if e, err := events.Next(t.Context()); err != nil || e.Data.(approval.Agreed).ID != id {
		t.Errorf("received %+v, %v", e, err)
	}
	_, err = of.allow(of.with(bobs), id) // the same person
	wantCode(t, err, fault.Conflict)
	if v := of.verdictAs(dan, "run:1", pay("x")); v != host.Ask {
		t.Errorf("with one of two: %v", v)
	}
	if list, err := of.store.List(of.as("cleo"), "person:"+of.ids["cleo"], approval.Pending, 10); err != nil || len(list) != 1 || of.store.Refusal(of.as("cleo"), &list[0]) != nil {
		t.Errorf("cleo sees %+v, %v", list, err)
	}
	if a := of.mustAllow(of.as("cleo"), id, approval.Allowed); a.By != "bob, cleo" || len(a.Decisions) != 2 {
		t.Errorf("after the second: %+v", a)
	}
	_, err = of.allow(of.as("ann"), id)
	wantCode(t, err, fault.Conflict)
	_, err = of.store.Decide(of.as("ann"), "", of.ask(dan, "run:r", "x"), host.Answer{Allow: true, Remember: approval.Tool})
	wantCode(t, err, fault.InvalidParams)
	if v := of.verdictAs(dan, "run:1", pay("x")); v != host.Allow {
		t.Errorf("with two: %v", v)
	}
	if v := of.verdictAs(dan, "run:1", pay("y")); v != host.Ask {
		t.Errorf("other arguments: %v", v)
	}
	done := host.Step{Seq: 1, Name: "mcp.call", Kind: host.Write, Args: pay("x").Args, Done: true}
	if v := of.verdictAs(dan, "run:1", pay("x"), done); v != host.Ask {
		t.Errorf("a second time: %v", v)
	}
	of.signIn("cleo", "", "user") // the role is checked again when the call runs
	if v := of.verdictAs(dan, "run:1", pay("x")); v != host.Ask {
		t.Errorf("after the role was lost: %v", v)
	}
}

// TestOneDenialDenies checks that the others need not be asked after a denial.
func TestOneDenialDenies(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	id := of.ask(of.as("ann"), "run:1", "x")
	of.mustAllow(of.as("bob"), id, approval.Pending)
	a, err := of.store.Decide(of.as("cleo"), "person:"+of.ids["cleo"], id, host.Answer{})
	if err != nil || a.State != approval.Denied || a.By != "cleo" || of.verdictAs(of.as("ann"), "run:1", pay("x")) != host.Deny {
		t.Errorf("denied: %+v, %v", a, err)
	}
}

// TestPlanOfSeveralRoles checks that an approval covers only what needs the same role.
func TestPlanOfSeveralRoles(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	lend := host.Effect{Name: "mcp.call", Kind: host.Write, Args: []host.Value{"bank", "lend", "x"}}
	p := paused("run:1", "", "x")
	p.Effect, p.Plan = lend, []host.Planned{{Digest: lend.Digest()}, {Digest: pay("x").Digest()}}
	dan := of.as("dan")
	asked, err := of.store.Ask(dan, p)
	if err != nil {
		t.Fatal(err)
	}
	root := principal.With(t.Context(), admin("key:root", ""))
	of.mustAllow(root, asked.ID, approval.Allowed)
	if of.verdictAs(dan, "run:1", lend) != host.Allow || of.verdictAs(dan, "run:1", pay("x")) != host.Ask {
		t.Error("an administrator allows what needs two of finance")
	}
}

// TestDecisionsAtTheSameTime checks that decisions of several processes are counted
// exactly: the last one that is needed decides, and no other.
func TestDecisionsAtTheSameTime(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	nodes := []*approval.Store{of.store, of.node(), of.node()}
	for round := range 5 {
		id := of.ask(of.as("dan"), "run:"+strings.Repeat("x", round+1), "x")
		states := make([]approval.State, len(nodes))
		errs := make([]error, len(nodes))
		var all sync.WaitGroup
		for i, name := range []string{"ann", "bob", "cleo"} {
			ctx := of.as(name)
			all.Go(func() {
				a, err := nodes[i].Decide(ctx, principal.Of(ctx).ID, id, host.Answer{Allow: true})
				states[i], errs[i] = a.State, err
			})
		}
		all.Wait()
		count := map[string]int{}
		for i := range states {
			switch {
			case errs[i] == nil:
				count[string(states[i])]++
			case fault.CodeOf(errs[i]) == fault.Conflict:
				count["late"]++
			default:
				t.Error(errs[i])
			}
		}
		if count["pending"] != 1 || count["allowed"] != 1 || count["late"] != 1 {
			t.Errorf("round %d: %v", round, count)
		}
		a, err := of.store.Get(of.as("ann"), "", id)
		if err != nil || a.Agreed() != 2 || slices.ContainsFunc(a.Decisions, func(d approval.Decision) bool { return d.By.User == "" }) {
			t.Errorf("stored %+v, %v", a, err)
		}
	}
}

// TestDelegation checks that somebody decides in the place of another, who then counts as
// one person, for as long as the delegation lasts and its giver has the role.
func TestDelegation(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	of.signIn("eve", "", "user")
	of.signIn("zoe", "acme", "finance")
	tomorrow := of.time.Now().Add(24 * time.Hour)
	delegate := func(from, role, to string, until time.Time) error {
		_, err := of.store.Delegate(of.as(from), role, to, until)
		return err
	}
	wantCode(t, delegate("dan", "finance", "eve", tomorrow), fault.Denied)        // does not have it
	wantCode(t, delegate("ann", "finance", "zoe", tomorrow), fault.NotFound)      // of another organisation
	wantCode(t, delegate("ann", "finance", "ann", tomorrow), fault.InvalidParams) // oneself
	wantCode(t, delegate("ann", "finance", "eve", tomorrow.AddDate(1, 0, 0)), fault.InvalidParams)
	if err := delegate("ann", "finance", "eve", tomorrow); err != nil {
		t.Fatal(err)
	}
	of.wantDelegations(map[string]int{"ann": 1, "eve": 1, "dan": 0, "zoe": 0})

	anns := of.ask(of.as("ann"), "run:ann", "x") // the asker never counts, not by a delegate either
	_, err := of.allow(of.as("eve"), anns)
	wantCode(t, err, fault.Denied)

	id := of.ask(of.as("dan"), "run:1", "x")
	if a := of.mustAllow(of.as("eve"), id, approval.Pending); a.Decisions[0].By.Name != "eve" || a.Decisions[0].Person != of.ids["ann"] || of.store.NameOf(t.Context(), of.ids["ann"]) != "ann" {
		t.Errorf("decided as %+v", a.Decisions)
	}
	for _, again := range []string{"eve", "ann"} {
		_, err := of.allow(of.as(again), id)
		wantCode(t, err, fault.Conflict)
	}
	of.mustAllow(of.as("bob"), id, approval.Allowed)
	if v := of.verdictAs(of.as("dan"), "run:1", pay("x")); v != host.Allow {
		t.Errorf("with a delegate: %v", v)
	}
	of.signIn("ann", "", "user")
	if v := of.verdictAs(of.as("dan"), "run:1", pay("x")); v != host.Ask {
		t.Errorf("after the giver lost the role: %v", v)
	}
	of.signIn("ann", "", "finance")

	of.time.Advance(25 * time.Hour)
	of.wantDelegations(map[string]int{"ann": 0, "eve": 0})
	_, err = of.allow(of.as("eve"), of.ask(of.as("dan"), "run:2", "x"))
	wantCode(t, err, fault.NotFound)
	if err := delegate("ann", "finance", "eve", of.time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := delegate("ann", "finance", "eve", of.time.Now()); err != nil { // ended
		t.Fatal(err)
	}
	_, err = of.allow(of.as("eve"), of.ask(of.as("dan"), "run:3", "x"))
	wantCode(t, err, fault.NotFound)
}

// wantDelegations checks how many delegations each person is shown.
func (of *staff) wantDelegations(want map[string]int) {
	of.t.Helper()
	for name, n := range want {
		list, err := of.store.Delegations(of.as(name))
		if err != nil || len(list) != n || n > 0 && (list[0].Person != of.ids["ann"] || list[0].To != of.ids["eve"] || list[0].Role != "finance") {
			of.t.Errorf("%s is shown %+v, %v", name, list, err)
		}
	}
}
