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

// garden is a timeline in beats and the transport that plays along it, on a
// software clock: it sounds nothing and tells what is due. Regions and markers are
// kept in the database.
type garden struct {
	db     *db.DB
	clock  clock.Clock
	events *event.Bus

	mu      sync.Mutex
	status  string
	tempo   float64
	from    float64   // where it was, in beats …
	since   time.Time // … at this time
	told    float64   // everything before this beat was told
	regions []Region  // by position
	markers []Marker  // by position
	stop    func() bool
	turn    uint64 // counts alarms, so that one set aside is known when it rings
	closed  bool
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

// now is the position in beats. The lock is held.
func (g *garden) now() float64 {
	if g.status != playing {
		return g.from
	}
	return g.from + g.clock.Now().Sub(g.since).Seconds()*g.tempo/60
}

// settle makes the position of now the one to count from. The lock is held.
func (g *garden) settle() {
	g.from, g.since = g.now(), g.clock.Now()
}

// change does something to the transport, tells of it, and sets the alarm for
// what comes next.
func (g *garden) change(what func()) GardenState {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell()
	g.settle()
	what()
	g.events.Publish(TransportStateChanged{g.status, g.from, g.tempo})
	g.arm()
	return g.snapshot()
}

func (g *garden) play() GardenState {
	return g.change(func() {
		if g.status != playing {
			g.status, g.told = playing, g.from-2*tolerance // what is right here is still to be told
		}
	})
}

func (g *garden) pause() GardenState { return g.change(func() { g.status = paused }) }

func (g *garden) halt() GardenState {
	return g.change(func() { g.status, g.from = stopped, 0 })
}

func (g *garden) seek(beat float64) GardenState {
	return g.change(func() { g.from, g.told = beat, beat-2*tolerance })
}

func (g *garden) setTempo(bpm float64) GardenState { return g.change(func() { g.tempo = bpm }) }

// GardenState is the transport as it stands.
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

// snapshot is the state. The lock is held.
func (g *garden) snapshot() GardenState {
	return GardenState{g.status, g.now(), g.tempo, len(g.regions), len(g.markers)}
}

// tell publishes everything that playing came to since the last time, in its
// order. The lock is held; publishing does not wait.
func (g *garden) tell() {
	if g.status != playing {
		return
	}
	until := g.now() + tolerance
	for {
		at := g.next()
		if at > until {
			return
		}
		g.tellAt(at)
		g.told = at
	}
}

// tolerance is how early something may be told, in beats: alarms ring to the
// nanosecond, and beats are fractions.
const tolerance = 1e-6

// next is the first point after what was told where something is due. The lock is
// held.
func (g *garden) next() float64 {
	at := math.Max(0, math.Floor(g.told+tolerance)+1)
	if g.told < 0 {
		at = 0
	}
	earlier := func(point float64) {
		if point > g.told+tolerance/2 && point < at {
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

// tellAt publishes what is due at a point. The lock is held.
func (g *garden) tellAt(at float64) {
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

// arm sets the alarm for the next thing due. The lock is held.
func (g *garden) arm() {
	g.disarm()
	if g.status != playing || g.closed {
		return
	}
	wait := (g.next() - g.now()) * 60 / g.tempo
	g.turn++
	turn := g.turn
	g.stop = g.clock.AfterFunc(max(time.Duration(math.Ceil(wait*float64(time.Second))), 1), func() { g.ring(turn) })
}

func (g *garden) disarm() {
	if g.stop != nil {
		g.stop()
		g.stop = nil
	}
	g.turn++
}

// ring is called when something is due.
func (g *garden) ring(turn uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if turn != g.turn || g.closed {
		return
	}
	g.tell()
	g.arm()
}
