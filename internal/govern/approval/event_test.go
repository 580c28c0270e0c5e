package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
)

// received reads the types of the events of a subscription, with the runs that they are of.
func received(sub *event.Subscription) string {
	var got []string
	for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
		run := ""
		switch data := e.Data.(type) {
		case approval.Requested:
			run = data.Run
		case approval.Agreed:
			run = data.Run
		case approval.Settled:
			run = data.Run
		}
		got = append(got, strings.TrimPrefix(e.Type, "approval.")+" "+run)
	}
	return strings.Join(got, ", ")
}

// TestEventsReachThoseWhoDecide checks that people with the role of a request, and those who
// decide in their place, get its events and nothing else of the asker's, and that nobody
// else gets them.
func TestEventsReachThoseWhoDecide(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	of.signIn("eve", "", "user")
	of.signIn("max", "", "user")
	of.signIn("zoe", "acme", "finance")
	if _, err := of.store.Delegate(of.as("ann"), "finance", "eve", of.time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	zoe := principal.Principal{ID: principal.PersonID(of.ids["zoe"], "acme"), User: of.ids["zoe"], Org: "acme"}
	inChat := principal.Of(of.as("bob"))
	inChat.Person = "/bob"
	readers := map[string]principal.Principal{
		"the asker": principal.Of(of.as("dan")), "one of the role": principal.Of(of.as("bob")), "a key of one": principal.Of(of.with(of.key("cleos", "cleo"))),
		"a delegate": principal.Of(of.as("eve")), "a colleague": principal.Of(of.as("max")), "the role elsewhere": zoe, "a chat for one": inChat,
		"a service": {ID: "key:service", Scopes: []principal.Scope{principal.Read, principal.MCP}},
	}
	subs := map[string]*event.Subscription{}
	for name, who := range readers {
		subs[name] = of.bus.SubscribeAs(who, event.Options{})
		t.Cleanup(subs[name].Close)
	}
	dan := of.as("dan")
	of.bus.PublishFor(principal.OwnerOf(dan), approval.Requested{ID: "a-other", Run: "job:other"}) // decided by an administrator
	id := of.ask(dan, "run:1", "x")
	of.mustAllow(of.as("bob"), id, approval.Pending)
	of.mustAllow(of.as("cleo"), id, approval.Allowed)
	of.signIn("bob", "", "user") // what he sees now is nothing
	gone := of.ask(dan, "run:2", "x")
	if err := of.store.Withdraw(t.Context(), "run:2"); err != nil {
		t.Fatal(err)
	}
	const first, second = "requested run:1, agreed run:1, settled run:1", "requested run:2, settled run:2"
	want := map[string]string{
		"the asker": "requested job:other, " + first + ", " + second, "one of the role": first, "a key of one": first + ", " + second, "a delegate": first + ", " + second,
	}
	for name, sub := range subs {
		if got := received(sub); got != want[name] {
			t.Errorf("%s got %q, want %q", name, got, want[name])
		}
	}
	if list, err := of.store.List(of.as("bob"), "person:"+of.ids["bob"], "", 10); err != nil || slices.ContainsFunc(list, func(a approval.Approval) bool { return a.ID == gone }) {
		t.Errorf("without the role: %+v, %v", list, err)
	}
}

// TestRoleOfTheChatsOrganisation checks that a chat through a key of all organisations asks
// the role in the organisation of its person.
func TestRoleOfTheChatsOrganisation(t *testing.T) {
	t.Parallel()
	of := newStaff(t)
	of.signIn("zoe", "acme", "finance")
	chat := principal.With(t.Context(), principal.Principal{ID: "key:web", Person: "acme/guest", Scopes: []principal.Scope{principal.Chat}})
	zoe := principal.With(t.Context(), principal.Principal{ID: principal.PersonID(of.ids["zoe"], "acme"), User: of.ids["zoe"], Org: "acme"})
	id := of.ask(chat, "run:1", "x")
	if _, err := of.store.Decide(of.as("bob"), "", id, host.Answer{Allow: true}); err == nil {
		t.Error("the role outside of the organisation decides")
	}
	of.mustAllow(zoe, id, approval.Pending)
}
