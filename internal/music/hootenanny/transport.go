package hootenanny

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/toolset"
)

type object = toolset.Object

// States of the transport.
const (
	playing = "playing"
	paused  = "paused"
	stopped = "stopped"
)

// garden is a timeline in beats and a transport on a software clock. Playing
// produces no sound: it publishes beats, markers and regions as events when they
// are due. Regions and markers are stored in the database.
type garden struct {
	db     *db.DB
	clock  clock.Clock
	events *event.Bus

	mu        sync.Mutex
	status    string
	tempo     float64
	from      float64 // the position in beats at time since
	since     time.Time
	published float64  // everything before this beat was published
	regions   []Region // by position
	markers   []Marker // by position
	stop      func() bool
	alarm     uint64 // number of the current timer; older ones are ignored
	closed    bool
}

// defaultTempo is in beats per minute.
const defaultTempo = 120

func openGarden(ctx context.Context, database *db.DB, c clock.Clock, events *event.Bus) (*garden, error) {
	g := &garden{db: database, clock: c, events: events, status: stopped, tempo: defaultTempo}
	return g, g.load(ctx)
}

func (g *garden) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.disarm()
}

// now is the position in beats. The caller holds the lock.
func (g *garden) now() float64 {
	if g.status != playing {
		return g.from
	}
	return g.from + g.clock.Now().Sub(g.since).Seconds()*g.tempo/60
}

// settle makes the current position the one to count from. The caller holds the
// lock.
func (g *garden) settle() {
	g.from, g.since = g.now(), g.clock.Now()
}

// change changes the transport, publishes its state, and sets the timer for the
// next event.
func (g *garden) change(what func()) GardenState {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publishDue()
	g.settle()
	what()
	g.events.Publish(TransportStateChanged{g.status, g.from, g.tempo})
	g.arm()
	return g.snapshot()
}

func (g *garden) play() GardenState {
	return g.change(func() {
		if g.status != playing {
			g.status, g.published = playing, g.from-2*tolerance // what is due at this position is published
		}
	})
}

func (g *garden) pause() GardenState { return g.change(func() { g.status = paused }) }

func (g *garden) halt() GardenState {
	return g.change(func() { g.status, g.from = stopped, 0 })
}

func (g *garden) seek(beat float64) GardenState {
	return g.change(func() { g.from, g.published = beat, beat-2*tolerance })
}

func (g *garden) setTempo(bpm float64) GardenState { return g.change(func() { g.tempo = bpm }) }

// GardenState is the state of the transport.
type GardenState struct {
	State       string  `json:"state" jsonschema:"playing, paused or stopped"`
	Position    float64 `json:"position_beats"`
	Tempo       float64 `json:"tempo_bpm"`
	RegionCount int     `json:"region_count"`
	MarkerCount int     `json:"marker_count"`
}

func (g *garden) state() GardenState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.snapshot()
}

// snapshot returns the state. The caller holds the lock.
func (g *garden) snapshot() GardenState {
	return GardenState{g.status, g.now(), g.tempo, len(g.regions), len(g.markers)}
}

// publishDue publishes everything that became due since the last time, in order.
// The caller holds the lock; publishing does not block.
func (g *garden) publishDue() {
	if g.status != playing {
		return
	}
	until := g.now() + tolerance
	for {
		at := g.next()
		if at > until {
			return
		}
		g.publishAt(at)
		g.published = at
	}
}

// tolerance is how early something may be published, in beats: timers have a
// resolution of nanoseconds, and beats are fractions.
const tolerance = 1e-6

// next is the first position after what was published where something is due. The
// caller holds the lock.
func (g *garden) next() float64 {
	at := math.Max(0, math.Floor(g.published+tolerance)+1)
	if g.published < 0 {
		at = 0
	}
	earlier := func(point float64) {
		if point > g.published+tolerance/2 && point < at {
			at = point
		}
	}
	for _, r := range g.regions {
		earlier(r.Position)
		earlier(r.Position + r.Duration)
	}
	for _, m := range g.markers {
		earlier(m.Position)
	}
	return at
}

// publishAt publishes what is due at a position. The caller holds the lock.
func (g *garden) publishAt(at float64) {
	here := func(point float64) bool { return math.Abs(point-at) <= tolerance/2 }
	for _, r := range g.regions {
		if here(r.Position + r.Duration) {
			g.events.Publish(RegionLeft{r})
		}
	}
	if beat := math.Round(at); here(beat) {
		g.events.Publish(BeatTick{Beat: uint64(beat), Position: beat, Tempo: g.tempo})
	}
	for _, m := range g.markers {
		if here(m.Position) {
			g.events.Publish(MarkerReached(m))
		}
	}
	for _, r := range g.regions {
		if here(r.Position) {
			g.events.Publish(RegionEntered{r})
		}
	}
}

// arm sets the timer for the next event. The caller holds the lock.
func (g *garden) arm() {
	g.disarm()
	if g.status != playing || g.closed {
		return
	}
	wait := (g.next() - g.now()) * 60 / g.tempo
	g.alarm++
	turn := g.alarm
	g.stop = g.clock.AfterFunc(max(time.Duration(math.Ceil(wait*float64(time.Second))), 1), func() { g.onTimer(turn) })
}

func (g *garden) disarm() {
	if g.stop != nil {
		g.stop()
		g.stop = nil
	}
	g.alarm++
}

// onTimer is called when the timer expires.
func (g *garden) onTimer(turn uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if turn != g.alarm || g.closed {
		return
	}
	g.publishDue()
	g.arm()
}
