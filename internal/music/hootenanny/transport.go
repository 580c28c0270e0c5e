package hootenanny

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
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

// gardens are the projects: timelines in beats, each with a transport on a software clock.
// They are stored in the database. Those that play here are also in memory: playing
// produces no sound, it publishes beats, markers and regions as events when they are due.
type gardens struct {
	db     *db.DB
	clock  clock.Clock
	events *event.Bus
	log    *slog.Logger
	node   string

	mu      sync.Mutex
	players map[string]*player // by project
	applied map[string]int64   // newest version of each project that was applied here
	closed  bool
}

// player publishes the events of a project that plays. The lock of gardens guards it.
type player struct {
	*project
	published float64 // everything before this beat was published
	stop      func() bool
}

// defaultTempo is in beats per minute.
const defaultTempo = 120

// maxPlaying is how many projects may play at a time.
const maxPlaying = 64

// openGardens opens the projects. Those that this node played when it ended are paused,
// where they were when their transport last changed.
func openGardens(ctx context.Context, database *db.DB, o Options) (*gardens, error) {
	g := &gardens{
		db: database, clock: o.Clock, events: o.Events, log: o.Log, node: o.Node, players: map[string]*player{}, applied: map[string]int64{},
	}
	return g, database.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE hoot_projects SET status = $1, version = version + 1 WHERE status = $2 AND node = $3", paused, playing, o.Node)
		return err
	})
}

// closeTimeout is how long the positions may take to be stored when the backend closes.
const closeTimeout = 5 * time.Second

// close pauses what plays here and stores its position.
func (g *gardens) close(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	var names []string
	for name, p := range g.players {
		p.disarm()
		names = append(names, name)
	}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, name := range names {
		_, err := g.change(ctx, name, transportChange, func(_ *db.Tx, p *project) error {
			if p.status == playing && p.node == g.node {
				p.status = paused
			}
			return nil
		})
		if err != nil {
			g.log.WarnContext(ctx, "position of a project not stored", "project", name, "error", err)
		}
	}
}

// kind says what a change is about.
type kind int

const (
	timelineChange  kind = iota // regions or markers
	transportChange             // state or tempo
	moveChange                  // the position
)

// change changes a project, creating it if there is none, and then what plays here.
func (g *gardens) change(ctx context.Context, name string, what kind, do func(tx *db.Tx, p *project) error) (*project, error) {
	var p *project
	resumed := false
	err := g.db.Write(ctx, func(tx *db.Tx) (err error) {
		if p, err = loadTransport(ctx, tx, name); err != nil {
			return err
		}
		before := p.status
		p.settle(g.clock.Now())
		if err := do(tx, p); err != nil {
			return err
		}
		resumed = p.status == playing && before != playing
		if err := p.save(ctx, tx); err != nil {
			return err
		}
		return p.loadTimeline(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	g.apply(p, what, resumed || what == moveChange) //nolint:contextcheck // the timer that it sets fires after the call
	return p, nil
}

// apply plays a project as it was changed: what became due before the change is published,
// then the new state, and the timer is set for the next event. moved says that the
// position is a new one, at which everything is published.
func (g *gardens) apply(p *project, what kind, moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.applied[p.name] >= p.version { // a later change was faster
		return
	}
	g.applied[p.name] = p.version
	next := &player{project: p, published: p.from - 2*tolerance}
	if before := g.players[p.name]; before != nil {
		g.publishDue(before, p.since)
		before.disarm()
		if !moved {
			next.published = before.published
		}
	}
	delete(g.players, p.name)
	if what != timelineChange {
		g.events.Publish(TransportStateChanged{p.name, p.status, p.from, p.tempo})
	}
	if p.status == playing && p.node == g.node && !g.closed {
		g.players[p.name] = next
		g.arm(next)
	}
}

// play starts the transport of a project on this node.
func (g *gardens) play(ctx context.Context, name string) (*project, error) {
	g.mu.Lock()
	full := len(g.players) >= maxPlaying && g.players[name] == nil
	g.mu.Unlock()
	if full {
		return nil, fault.New(fault.Limit, "%d projects are playing", maxPlaying).WithHint("stop one with garden_stop; garden_projects lists them")
	}
	return g.change(ctx, name, transportChange, func(_ *db.Tx, p *project) error {
		if p.status != playing {
			p.status, p.node = playing, g.node
		}
		return nil
	})
}

func (g *gardens) pause(ctx context.Context, name string) (*project, error) {
	return g.change(ctx, name, transportChange, func(_ *db.Tx, p *project) error { p.status = paused; return nil })
}

func (g *gardens) halt(ctx context.Context, name string) (*project, error) {
	return g.change(ctx, name, moveChange, func(_ *db.Tx, p *project) error { p.status, p.from = stopped, 0; return nil })
}

func (g *gardens) seek(ctx context.Context, name string, beat float64) (*project, error) {
	return g.change(ctx, name, moveChange, func(_ *db.Tx, p *project) error { p.from = beat; return nil })
}

func (g *gardens) setTempo(ctx context.Context, name string, bpm float64) (*project, error) {
	return g.change(ctx, name, transportChange, func(_ *db.Tx, p *project) error { p.tempo = bpm; return nil })
}

// GardenState is the state of a project's transport.
type GardenState struct {
	Project     string  `json:"project"`
	State       string  `json:"state" jsonschema:"playing, paused or stopped"`
	Position    float64 `json:"position_beats"`
	Tempo       float64 `json:"tempo_bpm"`
	RegionCount int     `json:"region_count"`
	MarkerCount int     `json:"marker_count"`
}

// stateOf returns the state of a project with its whole timeline.
func (g *gardens) stateOf(p *project) GardenState {
	return GardenState{p.name, p.status, p.at(g.clock.Now()), p.tempo, len(p.regions), len(p.markers)}
}

// state reads the state of a project.
func (g *gardens) state(ctx context.Context, name string) (s GardenState, err error) {
	err = g.db.Read(ctx, func(tx *db.Tx) error {
		p, err := loadTransport(ctx, tx, name)
		if err != nil {
			return err
		}
		if err := p.known(ctx, tx); err != nil {
			return err
		}
		s = g.stateOf(p)
		return tx.QueryRow(ctx, "SELECT (SELECT COUNT(*) FROM hoot_regions WHERE project = $1), (SELECT COUNT(*) FROM hoot_markers WHERE project = $1)", name).
			Scan(&s.RegionCount, &s.MarkerCount)
	})
	return s, err
}

// publishDue publishes everything that became due until a time, in order. The caller
// holds the lock; publishing does not block.
func (g *gardens) publishDue(p *player, now time.Time) {
	until := p.at(now) + tolerance
	for at := p.next(); at <= until; at = p.next() {
		g.publishAt(p, at)
		p.published = at
	}
}

// tolerance is how early something may be published, in beats: timers have a
// resolution of nanoseconds, and beats are fractions.
const tolerance = 1e-6

// next is the first position after what was published where something is due. The
// caller holds the lock.
func (p *player) next() float64 {
	at := math.Max(0, math.Floor(p.published+tolerance)+1)
	if p.published < 0 {
		at = 0
	}
	earlier := func(point float64) {
		if point > p.published+tolerance/2 && point < at {
			at = point
		}
	}
	for _, r := range p.regions {
		earlier(r.Position)
		earlier(r.Position + r.Duration)
	}
	for _, m := range p.markers {
		earlier(m.Position)
	}
	return at
}

// publishAt publishes what is due at a position. The caller holds the lock.
func (g *gardens) publishAt(p *player, at float64) {
	here := func(point float64) bool { return math.Abs(point-at) <= tolerance/2 }
	for _, r := range p.regions {
		if here(r.Position + r.Duration) {
			g.events.Publish(RegionLeft{p.name, r})
		}
	}
	if beat := math.Round(at); here(beat) {
		g.events.Publish(BeatTick{Project: p.name, Beat: uint64(beat), Position: beat, Tempo: p.tempo})
	}
	for _, m := range p.markers {
		if here(m.Position) {
			g.events.Publish(MarkerReached{p.name, m.ID, m.Position, m.Type, m.Metadata})
		}
	}
	for _, r := range p.regions {
		if here(r.Position) {
			g.events.Publish(RegionEntered{p.name, r})
		}
	}
}

// arm sets the timer for the next event. The caller holds the lock.
func (g *gardens) arm(p *player) {
	p.disarm()
	wait := (p.next() - p.at(g.clock.Now())) * 60 / p.tempo
	p.stop = g.clock.AfterFunc(max(time.Duration(math.Ceil(wait*float64(time.Second))), 1), func() { g.onTimer(p) })
}

func (p *player) disarm() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// onTimer is called when the timer of a player expires.
func (g *gardens) onTimer(p *player) {
	if g.db.Kind() != db.SQLite { // other nodes may have changed it
		g.refresh(p)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.players[p.name] != p || g.closed {
		return
	}
	g.publishDue(p, g.clock.Now())
	g.arm(p)
}

// refreshTimeout is how long a player waits for the database at most.
const refreshTimeout = 5 * time.Second

// refresh applies what other nodes changed of a project that plays here.
func (g *gardens) refresh(p *player) {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	var now *project
	err := g.db.Read(ctx, func(tx *db.Tx) (err error) {
		if now, err = loadTransport(ctx, tx, p.name); err != nil || now.version == p.version {
			return err
		}
		return now.loadTimeline(ctx, tx)
	})
	switch {
	case err != nil:
		g.log.DebugContext(ctx, "project not read: it plays on as it was", "project", p.name, "error", err)
	case now.version == 0:
		g.forget(p.name)
	case now.version != p.version:
		g.apply(now, timelineChange, now.from != p.from)
	}
}

// forget ends what is in memory of a project that was deleted.
func (g *gardens) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.players[name]; p != nil {
		p.disarm()
		delete(g.players, name)
	}
	delete(g.applied, name)
}
