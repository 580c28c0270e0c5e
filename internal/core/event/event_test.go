package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

type connected struct{ Name string }

func (connected) EventType() string  { return "upstream.connected" }
func (c connected) EventKey() string { return c.Name }

type beat struct{ N int }

func (beat) EventType() string { return "clock.beat" }

// drain returns the queued events in a form that is easy to compare.
func drain(s *event.Subscription) []string {
	var got []string
	for e, ok := s.Poll(); ok; e, ok = s.Poll() {
		got = append(got, fmt.Sprintf("%d %v", e.Seq, e.Data))
	}
	return got
}

func TestModes(t *testing.T) {
	t.Parallel()
	type script = []event.Payload
	beats := script{beat{1}, beat{2}, beat{3}, beat{4}, beat{5}}
	tests := []struct {
		name    string
		options event.Options
		publish script
		want    []string
	}{
		{"every keeps order", event.Options{}, beats[:3], []string{"1 {1}", "2 {2}", "3 {3}"}},
		{"every replaces dropped events by Missed", event.Options{Buffer: 2}, beats,
			[]string{"3 {3}", "4 {4}", "5 {5}"}},
		{"every at the limit drops nothing", event.Options{Buffer: 5}, beats,
			[]string{"1 {1}", "2 {2}", "3 {3}", "4 {4}", "5 {5}"}},
		{"latest keeps the newest", event.Options{Mode: event.Latest}, beats, []string{"5 {5}"}},
		{"latest keeps one per key, in order of the newest", event.Options{Mode: event.Latest},
			script{connected{"a"}, beat{1}, connected{"b"}, connected{"a"}},
			[]string{"2 {1}", "3 {b}", "4 {a}"}},
		{"latest has a limit too", event.Options{Mode: event.Latest, Buffer: 1},
			script{connected{"a"}, connected{"b"}, connected{"c"}}, []string{"2 {2}", "3 {c}"}},
		{"exact type", event.Options{Types: []string{"clock.beat"}},
			script{connected{"a"}, beat{1}}, []string{"2 {1}"}},
		{"prefix", event.Options{Types: []string{"upstream.*"}},
			script{connected{"a"}, beat{1}}, []string{"1 {a}"}},
		{"several", event.Options{Types: []string{"unknown", "up*", "clock.beat"}},
			script{connected{"a"}, beat{1}}, []string{"1 {a}", "2 {1}"}},
		{"a type is not its own prefix", event.Options{Types: []string{"clock"}}, beats, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bus := event.New(event.BusOptions{})
			sub := bus.Subscribe(tt.options)
			defer sub.Close()
			for _, p := range tt.publish {
				bus.Publish(p)
			}
			if got := drain(sub); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMissedIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{Buffer: 1})
	defer sub.Close()
	for n := range 4 {
		bus.Publish(beat{n})
	}
	e, _ := sub.Poll()
	if got, want := e.Data, (event.Missed{Count: 3}); got != want || e.Type != "event.missed" || e.Seq != 3 {
		t.Errorf("first event = %+v, want Missed{3} with seq 3", e)
	}
	bus.Publish(beat{4}) // drops beat 3, which was unread
	if got, want := drain(sub), []string{"4 {1}", "5 {4}"}; !slices.Equal(got, want) {
		t.Errorf("then %q, want %q", got, want)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		keep  int
		after uint64
		want  []string
	}{
		{"nothing by default", 0, 0, []string{"6 {6}"}},
		{"from the middle", 0, 3, []string{"4 {4}", "5 {5}", "6 {6}"}},
		{"from the newest", 0, 5, []string{"6 {6}"}},
		{"all", 0, event.All, []string{"1 {1}", "2 {2}", "3 {3}", "4 {4}", "5 {5}", "6 {6}"}},
		{"all stored events", 2, event.All, []string{"4 {4}", "5 {5}", "6 {6}"}},
		{"older than the stored ones", 2, 1, []string{"3 {2}", "4 {4}", "5 {5}", "6 {6}"}},
		{"just stored", 2, 3, []string{"4 {4}", "5 {5}", "6 {6}"}},
		{"nothing is stored", -1, 2, []string{"5 {3}", "6 {6}"}},
		{"number of an earlier bus", 2, 99, []string{"3 {0}", "4 {4}", "5 {5}", "6 {6}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bus := event.New(event.BusOptions{Keep: tt.keep})
			for n := 1; n <= 5; n++ {
				bus.Publish(beat{n})
			}
			sub := bus.Subscribe(event.Options{After: tt.after})
			defer sub.Close()
			bus.Publish(beat{6})
			if got := drain(sub); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLastNumberMakesAGaplessSubscription(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	bus.Publish(beat{1})
	last := bus.Last()
	bus.Publish(beat{2})
	sub := bus.Subscribe(event.Options{After: last})
	defer sub.Close()
	if got, want := drain(sub), []string{"2 {2}"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNextWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := event.New(event.BusOptions{})
		sub := bus.Subscribe(event.Options{})
		defer sub.Close()
		got := make(chan event.Event)
		go func() {
			e, err := sub.Next(t.Context())
			if err != nil {
				t.Errorf("Next: %v", err)
			}
			got <- e
		}()
		synctest.Wait()
		bus.Publish(beat{7})
		if e := <-got; e.Data != (beat{7}) {
			t.Errorf("Next = %v, want beat 7", e.Data)
		}
	})
}

// TestReadersShareASubscription checks that two events at once wake two waiting
// readers.
func TestReadersShareASubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := event.New(event.BusOptions{})
		sub := bus.Subscribe(event.Options{})
		defer sub.Close()
		got := make(chan any, 2)
		for range 2 {
			go func() {
				e, _ := sub.Next(t.Context())
				got <- e.Data
			}()
		}
		synctest.Wait()
		bus.Publish(beat{1})
		bus.Publish(beat{2})
		a, b := <-got, <-got
		if a == b || a == nil || b == nil {
			t.Errorf("readers got %v and %v, want beats 1 and 2", a, b)
		}
	})
}

func TestNextEnds(t *testing.T) {
	t.Parallel()
	called := errors.New("cancelled")
	ends := map[string]struct {
		end  func(*event.Bus, *event.Subscription, context.CancelCauseFunc)
		want error
	}{
		"context": {func(_ *event.Bus, _ *event.Subscription, cancel context.CancelCauseFunc) { cancel(called) }, called},
		"close":   {func(_ *event.Bus, s *event.Subscription, _ context.CancelCauseFunc) { s.Close(); s.Close() }, event.ErrClosed},
		"bus":     {func(b *event.Bus, _ *event.Subscription, _ context.CancelCauseFunc) { b.Close(); b.Close() }, event.ErrClosed},
	}
	for name, tt := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				bus := event.New(event.BusOptions{})
				sub := bus.Subscribe(event.Options{})
				defer sub.Close()
				done := make(chan error)
				go func() {
					_, err := sub.Next(ctx)
					done <- err
				}()
				synctest.Wait()
				tt.end(bus, sub, cancel)
				if err := <-done; !errors.Is(err, tt.want) {
					t.Errorf("Next = %v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	reader, leaver := bus.Subscribe(event.Options{}), bus.Subscribe(event.Options{})
	bus.Publish(beat{1})
	leaver.Close()
	if got := drain(leaver); got != nil {
		t.Errorf("a closed subscription delivers %q", got)
	}
	bus.Close()
	bus.Publish(beat{2})
	if got, want := drain(reader), []string{"1 {1}"}; !slices.Equal(got, want) {
		t.Errorf("after the bus closed: %q, want what was queued: %q", got, want)
	}
	late := bus.Subscribe(event.Options{After: event.All})
	if got, want := drain(late), []string{"1 {1}"}; !slices.Equal(got, want) {
		t.Errorf("subscribed to a closed bus: %q, want the replay %q", got, want)
	}
	if _, err := late.Next(t.Context()); !errors.Is(err, event.ErrClosed) {
		t.Errorf("Next = %v, want ErrClosed", err)
	}
	(*event.Bus)(nil).Publish(beat{3}) // must not panic
}

func TestAllStopsWhenAsked(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{})
	defer sub.Close()
	bus.Publish(beat{1})
	bus.Publish(beat{2})
	for range sub.All(t.Context()) {
		break
	}
	if got, want := drain(sub), []string{"2 {2}"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

func TestEventJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	bus := event.New(event.BusOptions{Clock: clock.NewVirtual(at)})
	sub := bus.Subscribe(event.Options{})
	defer sub.Close()
	bus.Publish(connected{"alpha"})
	e, _ := sub.Poll()
	raw, err := json.Marshal(e)
	want := `{"seq":1,"time":"2026-11-15T12:00:00Z","type":"upstream.connected","data":{"Name":"alpha"}}`
	if err != nil || string(raw) != want {
		t.Errorf("got %s (%v), want %s", raw, err, want)
	}
}

// TestManyPublishersAndReaders has many publishers, readers that keep up, readers that come and go, and
// one that never reads. Every reader sees increasing numbers, and every event is
// accounted for.
func TestManyPublishersAndReaders(t *testing.T) {
	t.Parallel()
	const publishers, each = 8, 500
	bus := event.New(event.BusOptions{})
	asleep := bus.Subscribe(event.Options{Buffer: 10})
	defer asleep.Close()

	var readers, writers sync.WaitGroup
	for range 4 {
		sub := bus.Subscribe(event.Options{Buffer: 50})
		readers.Go(func() { account(t, sub, publishers*each) })
	}
	for range publishers {
		writers.Go(func() {
			for n := range each {
				bus.Publish(beat{n})
				if n%100 == 0 {
					bus.Subscribe(event.Options{After: event.All}).Close()
				}
			}
		})
	}
	writers.Wait()
	bus.Close()
	readers.Wait()
	account(t, asleep, publishers*each)
}

// account reads sub to its end and checks that read and missed events add up to want.
func account(t *testing.T, sub *event.Subscription, want uint64) {
	var last, seen uint64
	for e := range sub.All(context.Background()) {
		if e.Seq <= last {
			t.Errorf("event %d after %d", e.Seq, last)
		}
		last = e.Seq
		if m, ok := e.Data.(event.Missed); ok {
			seen += m.Count
		} else {
			seen++
		}
	}
	if seen != want {
		t.Errorf("accounted for %d events, want %d", seen, want)
	}
}

func BenchmarkPublish(b *testing.B) {
	modes := map[string]event.Mode{"every": event.Every, "latest": event.Latest}
	for name, mode := range modes {
		for _, n := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				bus := event.New(event.BusOptions{})
				for range n {
					bus.Subscribe(event.Options{Mode: mode})
				}
				var p event.Payload = connected{"alpha"}
				b.ReportAllocs()
				for b.Loop() {
					bus.Publish(p)
				}
			})
		}
	}
}

// BenchmarkHasSubscriber measures HasSubscriber for a type without subscriptions, while there
// are others.
func BenchmarkHasSubscriber(b *testing.B) {
	bus := event.New(event.BusOptions{})
	for range 10 {
		bus.Subscribe(event.Options{Types: []string{"upstream.connected", "upstream.removed", "job.*"}})
	}
	b.ReportAllocs()
	for b.Loop() {
		if bus.HasSubscriber("tool.call_started") {
			b.Fatal("there is no subscriber")
		}
	}
}

func BenchmarkPublishAndRead(b *testing.B) {
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{})
	var p event.Payload = connected{"alpha"}
	b.ReportAllocs()
	for b.Loop() {
		bus.Publish(p)
		if _, err := sub.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWant(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	some := bus.Subscribe(event.Options{Types: []string{"clock.beat"}})
	defer some.Close()
	all := bus.Subscribe(event.Options{})
	defer all.Close()
	bus.Publish(connected{"a"})
	some.Want("upstream.*")
	all.Want("clock.beat")
	bus.Publish(connected{"b"})
	bus.Publish(beat{1})
	if got := drain(some); !slices.Equal(got, []string{"2 {b}", "3 {1}"}) {
		t.Errorf("some: %q", got)
	}
	if got := drain(all); len(got) != 3 {
		t.Errorf("a subscription without types receives %q, want all", got)
	}
}

// TestHasSubscriberFollowsSubscriptions checks that HasSubscriber notices new, changed
// and closed subscriptions.
func TestHasSubscriberFollowsSubscriptions(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	check := func(when string, want bool) {
		t.Helper()
		if got := bus.HasSubscriber("clock.beat"); got != want {
			t.Errorf("%s: HasSubscriber = %v", when, got)
		}
	}
	check("at first", false)
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.*"}})
	check("with a subscription to another type", false)
	sub.Want("clock.*")
	check("after Want added the type", true)
	other := bus.Subscribe(event.Options{Types: []string{"clock.beat"}})
	bus.Publish(beat{1})
	sub.Close()
	check("with another", true)
	bus.Publish(beat{2})
	if got := drain(other); !slices.Equal(got, []string{"1 {1}", "2 {2}"}) {
		t.Errorf("the other subscription received %q", got)
	}
	bus.Close()
	check("after Close", false)
}

func TestHasSubscriberUsesWants(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	if bus.HasSubscriber("clock.beat") || (*event.Bus)(nil).HasSubscriber("clock.beat") {
		t.Error("a subscribed type has no subscriber")
	}
	loud := false
	picky := bus.Subscribe(event.Options{Wants: func(kind string) bool { return loud || kind != "clock.beat" }})
	defer picky.Close()
	if bus.HasSubscriber("clock.beat") || !bus.HasSubscriber("upstream.connected") {
		t.Error("Options.Wants is ignored")
	}
	bus.Publish(beat{1})
	loud = true
	bus.Publish(beat{2})
	if got := drain(picky); !slices.Equal(got, []string{"2 {2}"}) || !bus.HasSubscriber("clock.beat") {
		t.Errorf("got %q", got)
	}
}
