package eventrelay

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
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

// Events that arrive twice are published once, and missing ones are reported.
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
	want := "b job.started one0, b job.started two0, b job.started three0, b event.missed 0, b job.started last0"
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

// A node that may have missed notifications says so once, and goes on with what comes next.
func TestMissedEventsAreReported(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	a, b := start(t, database, "a"), start(t, database, "b")
	next := follow(t, a)
	send := func(id string) {
		b.sendBatch(t.Context(), []relayedEvent{{Type: "job.started", Data: json.RawMessage(`{"id": "` + id + `"}`)}})
	}
	send("first")
	if got, want := next(), "b job.started first0"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	b.sent += 3 // lost on the way
	a.receive("")
	if got, want := next(), "a event.missed 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	send("second")
	if got, want := next(), "b job.started second0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// If Ready times out, clients follow events before the first notification, and may have
// missed some.
func TestReadyTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := event.New(event.BusOptions{})
		defer bus.Close()
		r := New(Options{Bus: bus, Node: testNode("a")})
		sub := bus.Subscribe(event.Options{IncludeRemote: true})
		defer sub.Close()
		r.Ready(t.Context())
		r.receive("")
		if e, ok := sub.Poll(); !ok || e.Type != "event.missed" {
			t.Errorf("received %+v", e)
		}
	})
}
