package event_test

import (
	"cmp"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
)

type typed string

func (k typed) EventType() string { return string(k) }

// TestEventsBelongToTheirOwner checks new, stored and relayed events: somebody sees their own,
// and those of the program that concern everybody.
func TestEventsBelongToTheirOwner(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	ada, bob := principal.Principal{ID: "person:ada", Org: "acme"}, principal.Principal{ID: "person:bob", Org: "acme"}
	readers := map[string]principal.Principal{
		"ada": ada, "acme": {ID: "key:acme", Org: "acme", Scopes: []principal.Scope{principal.Org}}, "root": principal.Local(), "eve": {ID: "person:eve", Org: "other"},
	}
	live := map[string]*event.Subscription{}
	for name, who := range readers {
		live[name] = bus.SubscribeAs(who, event.Options{IncludeRemote: true})
		defer live[name].Close()
	}
	bus.PublishFor(ada.Owner(), typed("job.started"))
	bus.PublishFor(bob.Owner(), typed("job.finished"))
	bus.Publish(typed("upstream.connected"))
	bus.PublishFor(bob.Owner(), typed("upstream.lost"))
	bus.Publish(typed("upstream.stderr"))
	bus.PublishAbout("github@acme", typed("upstream.failed"))
	bus.PublishAbout("report@acme", typed("script.published"))
	bus.Publish(typed("something.new"))
	bus.Relay("b", event.Remote{Type: "session.used", Owner: ada.Owner(), Data: []byte("{}")})
	bus.Relay("b", event.Remote{Type: "session.closed", Owner: bob.Owner(), Data: []byte("{}")})
	all := []string{"job.started", "job.finished", "upstream.connected", "upstream.lost", "upstream.stderr", "upstream.failed", "script.published", "something.new", "session.used", "session.closed"}
	for name, want := range map[string][]string{
		"ada":  {"job.started", "upstream.connected", "upstream.failed", "script.published", "session.used"},
		"acme": {"job.started", "job.finished", "upstream.connected", "upstream.lost", "upstream.failed", "script.published", "session.used", "session.closed"},
		"root": all,
		"eve":  {"upstream.connected"},
	} {
		replayed := bus.SubscribeAs(readers[name], event.Options{After: event.All, IncludeRemote: true})
		defer replayed.Close()
		for how, sub := range map[string]*event.Subscription{"live": live[name], "replayed": replayed} {
			var got []string
			for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
				got = append(got, e.Type)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q, want %q", name, how, got, want)
			}
		}
	}
}

// TestReaders checks that the readers of an event get it besides its owner, also from another
// node: people and their keys, but not what chats with their rights.
func TestReaders(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	owner := principal.Principal{ID: "person:ada/acme", Org: "acme"}.Owner()
	subs := map[string]*event.Subscription{}
	for name, who := range map[string]principal.Principal{
		"bob": {ID: "person:bob/acme", Org: "acme"}, "bob's key": principal.Principal{ID: "person:bob/acme", Org: "acme"}.ByKey("laptop"),
		"bob elsewhere": {ID: "person:bob/other", Org: "other"}, "a chat": {ID: "person:bob/acme", Org: "acme", Person: "acme/guest"}, "eve": {ID: "person:eve/acme", Org: "acme"},
	} {
		subs[name] = bus.SubscribeAs(who, event.Options{IncludeRemote: true})
		defer subs[name].Close()
	}
	bus.PublishTo(owner, []string{"person:bob/acme"}, typed("approval.requested"))
	bus.PublishFor(owner, typed("job.started"))
	bus.Relay("b", event.Remote{Type: "approval.settled", Owner: owner, Readers: []string{"person:bob/acme"}, Data: []byte("{}")})
	for name, want := range map[string][]string{"bob": {"approval.requested", "approval.settled"}, "bob's key": {"approval.requested", "approval.settled"}, "bob elsewhere": nil, "a chat": nil, "eve": nil} {
		var got []string
		for e, ok := subs[name].Poll(); ok; e, ok = subs[name].Poll() {
			got = append(got, e.Type)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestProgramSubscriptions lists the files that receive events of all owners. Each acts on
// them, and passes them on to nobody, or to a server of the same program. Others use SubscribeAs.
func TestProgramSubscriptions(t *testing.T) {
	t.Parallel()
	may := []string{
		"builtin/menu.go", "cluster/eventrelay/relay.go", "mcp/upstream/manager.go", "mcp/upstream/upstreamtest/suite.go", "mcp/upstreamset/set.go",
		"music/hootenanny/event.go", "server/tooling.go", "zmq/hootserver/server.go",
	}
	call := regexp.MustCompile(`\.Subscribe\(event\.Options|(Bus|bus|Events|events)\.Subscribe\(`)
	var found []string
	sources := os.DirFS("../..")
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == "node_modules" {
			return cmp.Or(err, fs.SkipDir)
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(sources, path)
		if call.Match(source) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found, may) {
		t.Errorf("these files subscribe to the events of all owners:\n%q\nallowed are\n%q", found, may)
	}
}
