package hootenanny

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// pass advances the clock in small steps, publishes everything due after each, and
// returns the events.
func (b *fixture) pass(t *testing.T, d time.Duration) (found []string) {
	t.Helper()
	const step = 10 * time.Millisecond
	for ; d > 0; d -= step {
		b.clock.Advance(min(step, d))
		// What is due up to now is published, whether or not the timers' goroutines have run.
		b.gardens.mu.Lock()
		for _, p := range b.gardens.players {
			b.gardens.publishDue(p, b.clock.Now())
			b.gardens.arm(p)
		}
		b.gardens.mu.Unlock()
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

// must fails the test if a change fails, and returns the project.
func must(t *testing.T) func(p *project, err error) *project {
	t.Helper()
	return func(p *project, err error) *project {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

func TestTransportPublishesBeatsMarkersAndRegions(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	ctx, do := t.Context(), must(t)
	for _, r := range []Region{{ID: "a", Position: 1, Duration: 1.5, Behavior: "latent", Name: "verse"}, {ID: "b", Position: 2.5, Duration: 1, Behavior: "latent", Name: "chorus"}} {
		if err := b.gardens.addRegion(ctx, "song", r); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.gardens.addMarker(ctx, "song", Marker{ID: "m", Position: 2.25, Type: "cue_point"}); err != nil {
		t.Fatal(err)
	}
	do(b.gardens.play(ctx, "song")) // 120 beats per minute
	expect(t, "two seconds", b.pass(t, 2*time.Second),
		"playing@0.00", "beat 0", "beat 1", "into verse", "beat 2", "cue_point@2.25", "out of verse", "into chorus", "beat 3", "out of chorus", "beat 4")
	do(b.gardens.setTempo(ctx, "song", 60))
	expect(t, "at half the tempo", b.pass(t, 2*time.Second), "playing@4.00", "beat 5", "beat 6")
	do(b.gardens.pause(ctx, "song"))
	expect(t, "paused", b.pass(t, 5*time.Second), "paused@6.00")
	do(b.gardens.seek(ctx, "song", 2))
	do(b.gardens.play(ctx, "song"))
	expect(t, "from the second beat", b.pass(t, 500*time.Millisecond), "paused@2.00", "playing@2.00", "beat 2", "cue_point@2.25", "out of verse", "into chorus")
	do(b.gardens.halt(ctx, "song"))
	expect(t, "stopped", b.pass(t, time.Second), "stopped@0.00")
}

// TestTransportRunsByItself checks that the timer publishes events without further calls.
func TestTransportRunsByItself(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	must(t)(b.gardens.play(t.Context(), DefaultProject))
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
	ctx, do := t.Context(), must(t)
	do(b.gardens.play(ctx, "song"))
	b.clock.Advance(1250 * time.Millisecond)
	if got, err := b.gardens.state(ctx, "song"); err != nil || got.Position != 2.5 {
		t.Errorf("after 1.25 s at 120 bpm: %v, %v", got, err)
	}
	do(b.gardens.setTempo(ctx, "song", 240))
	b.clock.Advance(time.Second)
	if got := do(b.gardens.pause(ctx, "song")); got.from != 6.5 {
		t.Errorf("and 1 s at 240 bpm: beat %g", got.from)
	}
	b.clock.Advance(time.Hour)
	if got, err := b.gardens.state(ctx, "song"); err != nil || got.Position != 6.5 {
		t.Errorf("an hour later: %v, %v", got, err)
	}
}

func TestProjectsAreStored(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	b := openFixture(t, url)
	ctx, do := t.Context(), must(t)
	if err := b.gardens.addRegion(ctx, "song", Region{ID: "r", Position: 8, Duration: 2, Behavior: "latent"}); err != nil {
		t.Fatal(err)
	}
	if err := b.gardens.addMarker(ctx, "song", Marker{ID: "m", Position: 4, Type: "cue", Metadata: object(`{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	if moved, err := b.gardens.moveRegion(ctx, "song", "r", 9); err != nil || moved.Position != 9 {
		t.Fatal(moved, err)
	}
	do(b.gardens.setTempo(ctx, "song", 60))
	do(b.gardens.play(ctx, "song"))
	do(b.gardens.play(ctx, "other"))
	b.clock.Advance(3 * time.Second)
	b.Close(t.Context())
	again := openFixture(t, url)
	p, err := again.gardens.load(ctx, "song")
	if err != nil {
		t.Fatal(err)
	}
	if regions, markers := p.between(0, 100); len(regions) != 1 || regions[0].Position != 9 || len(markers) != 1 || string(markers[0].Metadata) != `{"a":1}` {
		t.Errorf("stored %v, %v", regions, markers)
	}
	if p.status != paused || p.tempo != 60 || p.from != 3 {
		t.Errorf("after the restart it is %s at %g, %g bpm; want it paused where it was", p.status, p.from, p.tempo)
	}
	if other := do(again.gardens.load(ctx, "other")); len(other.regions) != 0 || other.from != 6 {
		t.Errorf("the other project: %+v", other)
	}
}

// TestCrashPausesProjects checks that a project that played when its process was killed
// does not play on.
func TestCrashPausesProjects(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	b := openFixture(t, url)
	must(t)(b.gardens.seek(t.Context(), "song", 4))
	must(t)(b.gardens.play(t.Context(), "song"))
	again := openFixture(t, url) // b was not closed
	if p := must(t)(again.gardens.load(t.Context(), "song")); p.status != paused || p.from != 4 {
		t.Errorf("it is %s at %g", p.status, p.from)
	}
}

func callFrom(session string) tool.Call { return tool.Call{Caller: &tool.Caller{ID: session}} }

// TestSessionsHaveTheirProjects checks that calls without a project are about the one
// that their session opened, also after a restart.
func TestSessionsHaveTheirProjects(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	b := openFixture(t, url)
	ctx := t.Context()
	for _, session := range []string{"ada", "bob"} {
		if _, err := b.gardenOpen(ctx, callFrom(session), gardenOpenIn{"tune of " + session}); err != nil {
			t.Fatal(err)
		}
		if _, err := onProject(b.Backend, b.gardenCreateRegion)(ctx, callFrom(session), regionIn{Position: 1, Duration: 1, Behavior: "latent", Name: session}); err != nil {
			t.Fatal(err)
		}
	}
	b.Close(t.Context())
	b = openFixture(t, url)
	for session, want := range map[string]string{"ada": "ada", "bob": "bob", "eve": "", "": ""} {
		view, err := onProject(b.Backend, b.gardenQuery)(ctx, callFrom(session), gardenQueryIn{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(view.Regions); want == "" && len(view.Regions) != 0 || want != "" && (len(view.Regions) != 1 || view.Regions[0].Name != want) {
			t.Errorf("session %q sees %s of %s", session, got, view.Project)
		}
	}
	view, err := onProject(b.Backend, b.gardenQuery)(ctx, callFrom("bob"), gardenQueryIn{stretchIn: stretchIn{projectIn: projectIn{"tune of ada"}}})
	if err != nil || len(view.Regions) != 1 || view.Regions[0].Name != "ada" {
		t.Errorf("by name: %+v, %v", view, err)
	}
	list, err := b.gardenProjects(ctx, callFrom("ada"), noArguments{})
	if err != nil || list.Count != 2 || list.Current != "tune of ada" || list.Projects[0].RegionCount != 1 {
		t.Errorf("projects %+v, %v", list, err)
	}
	if _, err := b.gardenOpen(ctx, tool.Call{}, gardenOpenIn{"x"}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("open without a session: %v", err)
	}
	if _, err := b.gardenDeleteProject(ctx, callFrom("bob"), deleteProjectIn{"tune of ada"}); err != nil {
		t.Fatal(err)
	}
	if now, err := onProject(b.Backend, b.gardenStatus)(ctx, callFrom("ada"), projectIn{}); err != nil || now.Project != DefaultProject {
		t.Errorf("after the deletion: %+v, %v", now, err)
	}
}

func TestProjectNames(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	ctx := t.Context()
	for _, name := range []string{" ", "a ", " a", "../x", "a/b", "a\nb", "a\x00", "\xff", "'; DROP TABLE hoot_projects; --", "<script>", strings.Repeat("x", 65), "\u202ex"} {
		if _, err := onProject(b.Backend, b.gardenStatus)(ctx, tool.Call{}, projectIn{name}); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := b.gardenOpen(ctx, callFrom("x"), gardenOpenIn{name}); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("open %q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "Übung 1.b_c-d", strings.Repeat("ж", 64)} {
		if _, err := b.gardenOpen(ctx, callFrom("x"), gardenOpenIn{name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := onProject(b.Backend, b.gardenStatus)(ctx, tool.Call{}, projectIn{"Übung 1"}); fault.CodeOf(err) != fault.NotFound || !strings.Contains(fault.HintOf(err), "Übung 1.b_c-d") {
		t.Errorf("a project that does not exist: %v, %s", err, fault.HintOf(err))
	}
	if _, err := b.gardenDeleteProject(ctx, tool.Call{}, deleteProjectIn{DefaultProject}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("delete the default project: %v", err)
	}
}

func TestOnlySomeProjectsPlay(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for i := range maxPlaying {
		must(t)(b.gardens.play(t.Context(), fmt.Sprintf("p%d", i)))
	}
	if _, err := b.gardens.play(t.Context(), "one more"); fault.CodeOf(err) != fault.Limit {
		t.Errorf("one more plays: %v", err)
	}
	must(t)(b.gardens.play(t.Context(), "p0")) // it plays already
	must(t)(b.gardens.halt(t.Context(), "p0"))
	must(t)(b.gardens.play(t.Context(), "one more"))
	if err := b.gardens.deleteProject(t.Context(), "one more"); err != nil {
		t.Fatal(err)
	}
	if p := b.gardens.refreshed("one more"); p != nil {
		t.Error("a deleted project plays")
	}
	must(t)(b.gardens.play(t.Context(), "and one more"))
}

// refreshed returns what plays of a project after a look at the database.
func (g *gardens) refreshed(name string) *player {
	find := func() *player {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.players[name]
	}
	if p := find(); p != nil {
		g.refresh(p)
	}
	return find()
}

// TestNodesShareProjects checks that a node follows what another one changes.
func TestNodesShareProjects(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		open := func(node string) (*Backend, *event.Subscription) {
			bus := event.New(event.BusOptions{Clock: now})
			seen := bus.Subscribe(event.Options{Types: []string{"beat.*", "region.*"}, Buffer: 1000})
			b, err := Open(t.Context(), d, Options{Files: noFiles(t, d), Clock: now, Events: bus, Node: node})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close(t.Context()); bus.Close() })
			return b, seen
		}
		one, _ := open("one")
		ctx, do := t.Context(), must(t)
		do(one.gardens.play(ctx, "song"))
		two, seen := open("two")
		now.Advance(time.Second)
		if got, err := two.gardens.state(ctx, "song"); err != nil || got.State != playing || got.Position != 2 {
			t.Errorf("the other node sees %+v, %v", got, err)
		}
		if err := two.gardens.addRegion(ctx, "song", Region{ID: "late", Position: 2.5, Duration: 1, Behavior: "latent"}); err != nil {
			t.Fatal(err)
		}
		if p := one.gardens.refreshed("song"); p == nil || len(p.regions) != 1 {
			t.Fatalf("the node that plays has %+v", p)
		}
		do(two.gardens.pause(ctx, "song"))
		if one.gardens.refreshed("song") != nil || two.gardens.refreshed("song") != nil {
			t.Error("it still plays")
		}
		if e, ok := seen.Poll(); ok {
			t.Errorf("the other node published %v", e)
		}
	})
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
