package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// erase erases a person as often as something is left, and returns how often that was.
func (of *staff) erase(p personal.Person) (passes int) {
	of.t.Helper()
	for passes = 1; passes < 5; passes++ {
		var left int64
		for _, table := range approval.Personal() {
			err := of.db.Write(of.t.Context(), func(tx *db.Tx) error {
				n, err := table.Erase(of.t.Context(), tx, p)
				left += n
				return err
			})
			if err != nil {
				of.t.Fatal(err)
			}
		}
		if left == 0 {
			break
		}
	}
	return passes
}

// contents returns all rows of the tables of approvals.
func (of *staff) contents() string {
	of.t.Helper()
	var all strings.Builder
	for _, table := range approval.Personal() {
		err := of.db.Read(of.t.Context(), func(tx *db.Tx) error {
			everybody := personal.Table{Name: table.Name, Where: "1 = 1"}
			return everybody.Export(of.t.Context(), tx, personal.Person{}, func(row personal.Row) error {
				for column, value := range row.Values {
					fmt.Fprintf(&all, "%s.%s %s\n", row.Table, column, value)
				}
				return nil
			})
		})
		if err != nil {
			of.t.Fatal(err)
		}
	}
	return all.String()
}

// TestErasedDecider checks that decisions of an erased person stay, without the person: also
// those with other people, in somebody's place, with a key that is gone, and under a former
// name.
func TestErasedDecider(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	of.signIn("eve", "", "user")
	if _, err := of.store.Delegate(of.as("ann"), "finance", "eve", of.time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	both, byDelegate := of.ask(of.as("dan"), "run:both", "x"), of.ask(of.as("dan"), "run:delegate", "x")
	anns := of.key("anns", "ann")
	of.mustAllow(of.as("bob"), both, approval.Pending)
	of.time.Advance(time.Second)
	of.mustAllow(of.with(anns), both, approval.Allowed)
	of.mustAllow(of.as("eve"), byDelegate, approval.Pending)
	of.ask(of.with(anns), "run:own", "x")
	if _, err := of.keys.Revoke(t.Context(), "anns"); err != nil {
		t.Fatal(err)
	}
	lend := host.Effect{Name: "mcp.call", Kind: host.Write, Args: []host.Value{"bank", "lend", "x"}}
	p := paused("run:remembered", "", "x")
	p.Effect, p.Plan = lend, []host.Planned{{Digest: lend.Digest()}}
	asked, err := of.store.Ask(of.as("dan"), p)
	if err != nil {
		t.Fatal(err)
	}
	chief := principal.Of(of.as("ann"))
	chief.Scopes = []principal.Scope{principal.Admin}
	chief.Name = "Ann as she was called"
	if _, err := of.store.Decide(principal.With(t.Context(), chief), chief.ID, asked.ID, host.Answer{Allow: true, Remember: approval.Tool, By: "session:1"}); err != nil {
		t.Fatal(err)
	}
	before := of.contents()
	for _, text := range []string{of.ids["ann"], chief.Name} {
		if !strings.Contains(before, text) {
			t.Fatalf("%s is nowhere", text)
		}
	}
	gone := personal.Person{ID: of.ids["ann"], Name: "ann", Pseudonym: "erased:1"}
	if passes := of.erase(gone); passes != 2 {
		t.Errorf("%d passes", passes)
	}
	after := of.contents()
	for _, text := range []string{of.ids["ann"], chief.Name} {
		if strings.Contains(after, text) {
			t.Errorf("%s is left in\n%s", text, after)
		}
	}
	for id, want := range map[string]string{both: "bob, erased:1", asked.ID: "erased:1"} {
		a, err := of.store.Get(of.as("dan"), "person:"+of.ids["dan"], id)
		if err != nil || a.By != want || a.State != approval.Allowed {
			t.Errorf("decided %s by %q, %v, want %q", a.State, a.By, err, want)
		}
	}
	if a, err := of.store.Get(of.as("dan"), "person:"+of.ids["dan"], byDelegate); err != nil || len(a.Decisions) != 1 || a.Decisions[0].By.Name != "eve" || a.Decisions[0].Person != "erased:1" {
		t.Errorf("by the delegate: %+v, %v", a.Decisions, err)
	}
}
