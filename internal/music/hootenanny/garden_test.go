package hootenanny

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// pass advances the clock in small steps, publishes everything due after each, and
// returns the events.
func (b *fixture) pass(t *testing.T, d time.Duration) (found []string) {
	t.Helper()
	const step = 10 * time.Millisecond
	for ; d > 0; d -= step {
		b.clock.Advance(min(step, d))
		// A change without effect publishes what is due up to now, whether or not the
		// timer's goroutine has run.
		b.garden.mu.Lock()
		b.garden.publishDue()
		b.garden.arm()
		b.garden.mu.Unlock()
	}
	return b.events()
}

// events returns the events since the last call.
func (b *fixture) events() (found []string) {
	for {
		e, ok := b.seen.Poll()
		if !ok {
			return found
		}
		switch data := e.Data.(type) {
		case TransportStateChanged:
			found = append(found, fmt.Sprintf("%s@%.2f", data.State, data.Position))
		case BeatTick:
			found = append(found, fmt.Sprintf("beat %d", data.Beat))
		case MarkerReached:
			found = append(found, fmt.Sprintf("%s@%.2f", data.Type, data.Position))
		case RegionEntered:
			found = append(found, "into "+data.Name)
		case RegionLeft:
			found = append(found, "out of "+data.Name)
		}
	}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestTransportPublishesBeatsMarkersAndRegions(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	ctx := t.Context()
	for _, r := range []Region{{ID: "a", Position: 1, Duration: 1.5, Behavior: "latent", Name: "verse"}, {ID: "b", Position: 2.5, Duration: 1, Behavior: "latent", Name: "chorus"}} {
		if err := b.garden.addRegion(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.garden.addMarker(ctx, Marker{ID: "m", Position: 2.25, Type: "cue_point"}); err != nil {
		t.Fatal(err)
	}
	b.garden.play() // 120 beats per minute
	expect(t, "two seconds", b.pass(t, 2*time.Second),
		"playing@0.00", "beat 0", "beat 1", "into verse", "beat 2", "cue_point@2.25", "out of verse", "into chorus", "beat 3", "out of chorus", "beat 4")
	b.garden.setTempo(60)
	expect(t, "at half the tempo", b.pass(t, 2*time.Second), "playing@4.00", "beat 5", "beat 6")
	b.garden.pause()
	expect(t, "paused", b.pass(t, 5*time.Second), "paused@6.00")
	b.garden.seek(2)
	b.garden.play()
	expect(t, "from the second beat", b.pass(t, 500*time.Millisecond), "paused@2.00", "playing@2.00", "beat 2", "cue_point@2.25", "out of verse", "into chorus")
	b.garden.halt()
	expect(t, "stopped", b.pass(t, time.Second), "stopped@0.00")
}

// TestTransportRunsByItself checks that the timer publishes events without further calls.
func TestTransportRunsByItself(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.garden.play()
	for _, want := range []uint64{0, 1, 2, 3} {
		for {
			e, err := b.seen.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if beat, ok := e.Data.(BeatTick); ok {
				if beat.Beat != want {
					t.Fatalf("beat %d, want %d", beat.Beat, want)
				}
				break
			}
			if err := b.clock.AwaitSleepers(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			b.clock.Advance(time.Millisecond)
		}
		if err := b.clock.AwaitSleepers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(500 * time.Millisecond)
	}
}

func TestPositionFollowsTheClock(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.garden.play()
	b.clock.Advance(1250 * time.Millisecond)
	if got := b.garden.state().Position; got != 2.5 {
		t.Errorf("after 1.25 s at 120 bpm: beat %g", got)
	}
	b.garden.setTempo(240)
	b.clock.Advance(time.Second)
	if got := b.garden.pause().Position; got != 6.5 {
		t.Errorf("and 1 s at 240 bpm: beat %g", got)
	}
	b.clock.Advance(time.Hour)
	if got := b.garden.state().Position; got != 6.5 {
		t.Errorf("an hour later: beat %g", got)
	}
}

func TestTimelineIsStored(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	b := openFixture(t, url)
	if err := b.garden.addRegion(t.Context(), Region{ID: "r", Position: 8, Duration: 2, Behavior: "latent"}); err != nil {
		t.Fatal(err)
	}
	if err := b.garden.addMarker(t.Context(), Marker{ID: "m", Position: 4, Type: "cue", Metadata: object(`{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.garden.moveRegion(t.Context(), "r", 9); err != nil {
		t.Fatal(err)
	}
	again := openFixture(t, url)
	regions, markers := again.garden.between(0, 100)
	if len(regions) != 1 || regions[0].Position != 9 || len(markers) != 1 || string(markers[0].Metadata) != `{"a":1}` {
		t.Errorf("stored %v, %v", regions, markers)
	}
}

func TestEventsExpire(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.ring.mu.Lock()
	b.ring.bounds = 3
	b.ring.mu.Unlock()
	first, err := b.eventPoll(t.Context(), tool.Call{}, eventPollIn{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		b.bus.Publish(TransportStateChanged{State: playing})
		b.bus.Publish(BeatTick{Beat: 7})
	}
	for b.ring.newest() < 5 { // they arrive through the bus
		b.ring.mu.Lock()
		woken := b.ring.added
		b.ring.mu.Unlock()
		if b.ring.newest() < 5 {
			<-woken
		}
	}
	if _, err := b.eventPoll(t.Context(), tool.Call{}, eventPollIn{Cursor: first.Cursor}); err == nil {
		t.Error("events after the cursor are no longer stored, but there is no error")
	}
	now, err := b.eventPoll(t.Context(), tool.Call{}, eventPollIn{Since: 1000})
	if err != nil || len(now.Events) != 3 || now.Events[0].Seq != 3 || now.Buffer.Oldest != 3 || now.Buffer.Newest != 5 {
		t.Errorf("polled %+v, %v", now, err)
	}
	if now.Snapshot.LatestBeat == nil || now.Snapshot.LatestBeat.Beat != 7 {
		t.Errorf("the latest beat is %+v", now.Snapshot.LatestBeat)
	}
}
