package eventrelay

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

type testNode string

func (n testNode) Name() string { return string(n) }
func (testNode) Watched() bool  { return true }

// start runs the relay of a node until the test ends, and returns it once it receives.
func start(t *testing.T, database, name string) *Relay {
	t.Helper()
	store, err := db.Open(t.Context(), database, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bus := event.New(event.BusOptions{})
	r := New(Options{Bus: bus, Store: store, Node: testNode(name), NodeID: name + "-id", Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		bus.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-r.started:
	case <-time.After(clocktest.Timeout):
		t.Fatal("no notification arrived")
	}
	return r
}

// follow returns a function that reads the next event of other nodes as text.
func follow(t *testing.T, r *Relay) (next func() string) {
	sub := r.options.Bus.Subscribe(event.Options{IncludeRemote: true, Buffer: 100})
	t.Cleanup(sub.Close)
	return func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
		defer cancel()
		e, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		remote, _ := e.Data.(event.Remote)
		var data struct {
			ID    string
			Count uint64
		}
		if err := json.Unmarshal(remote.Data, &data); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %s %s%d", e.Node, e.Type, data.ID, data.Count)
	}
}

// Events that arrive twice are published once, and missing ones are counted.
func TestEventsArePublishedOnce(t *testing.T) {
	t.Parallel()
	a := start(t, dbtest.Postgres(t), "a")
	next := follow(t, a)
	send := func(before uint64, ids ...string) {
		m := message{Node: "b", ID: "b-id", Before: before}
		for _, id := range ids {
			m.Events = append(m.Events, relayedEvent{Type: "job.started", Data: json.RawMessage(`{"id":"` + id + `"}`)})
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.options.Store.Notify(t.Context(), topic, string(text)); err != nil {
			t.Fatal(err)
		}
	}
	send(10, "one", "two")
	send(10, "one", "two")
	send(11, "two", "three")
	send(18, "last")
	var got []string
	for len(got) == 0 || !strings.Contains(got[len(got)-1], "last") {
		got = append(got, next())
	}
	want := "b job.started one0, b job.started two0, b job.started three0, b event.missed 5, b job.started last0"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Events of another node belong to their owner there, and are seen by the same readers.
func TestOwnerAndReadersAreRelayed(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	a, b := start(t, database, "a"), start(t, database, "b")
	sub := a.options.Bus.SubscribeAs(principal.Principal{ID: "person:bob"}, event.Options{IncludeRemote: true})
	defer sub.Close()
	ada := principal.Owner{ID: "person:ada"}
	b.sendBatch(t.Context(), appendEvent(nil, event.Event{Type: "job.started", Data: struct{}{}, Owner: ada}))
	b.sendBatch(t.Context(), appendEvent(nil, event.Event{Type: "approval.requested", Data: struct{}{}, Owner: ada, Readers: []string{"person:bob"}}))
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	if e, err := sub.Next(ctx); err != nil || e.Type != "approval.requested" || e.Owner != ada {
		t.Errorf("received %+v, %v", e, err)
	}
}

// A node that may have missed notifications asks the others for their counts, and
// publishes how many events are missing if there are any.
func TestMissedEventsAreCounted(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	a, b := start(t, database, "a"), start(t, database, "b")
	next := follow(t, a)
	b.sendBatch(t.Context(), []relayedEvent{{Type: "job.started", Data: json.RawMessage(`{"id": "first"}`)}})
	if got, want := next(), "b job.started first0"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	a.timeout = clocktest.Timeout
	a.receive(t.Context(), "") // it missed nothing
	b.sent.Add(3)              // lost on the way
	a.receive(t.Context(), "")
	if got, want := next(), "b event.missed 3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a.timeout = time.Millisecond // b may be too slow, and c does not exist
	a.counts.update(&message{Node: "c", ID: "c-id", Before: 7})
	a.receive(t.Context(), "")
	for {
		got := next()
		if got == "c event.missed 0" {
			break
		}
		if !strings.HasPrefix(got, "b event.missed") && !strings.HasPrefix(got, "c event.missed 7") {
			t.Fatalf("got %s", got)
		}
	}
}
