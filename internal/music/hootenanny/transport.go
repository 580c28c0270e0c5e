package hootenanny

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// DefaultProject is the project of callers that named none. It always exists.
const DefaultProject = "default"

// Limits of projects.
const (
	maxProjects = 1000
	maxSessions = 10_000 // how many sessions' choices are stored
)

// projectForm takes milliseconds to compile, so that it waits for its first use.
var projectForm = lazyregexp.New(`^[\pL\pN]([\pL\pN ._-]{0,62}[\pL\pN._-])?$`)

func checkProject(name string) error {
	if !projectForm().MatchString(name) {
		return invalid("%.100q cannot be the name of a project", name).
			WithHint("use 1 to 64 letters, digits, spaces and . _ -, beginning with a letter or digit")
	}
	return nil
}

// project is a timeline and the state of its transport, as they are stored.
type project struct {
	name    string
	version int64 // counts the changes; 0 if it is not stored
	status  string
	tempo   float64
	from    float64 // the position in beats at time since
	since   time.Time
	node    string   // which plays it, if it is playing
	regions []Region // by position
	markers []Marker // by position
}

// at is the position in beats at a time.
func (p *project) at(now time.Time) float64 {
	if p.status != playing {
		return p.from
	}
	return p.from + max(0, now.Sub(p.since).Seconds())*p.tempo/60
}

// settle makes the current position the one to count from.
func (p *project) settle(now time.Time) { p.from, p.since = p.at(now), now }

// loadTransport reads the state of a project. One that is not stored is stopped.
func loadTransport(ctx context.Context, tx *db.Tx, name string) (*project, error) {
	p := &project{name: name, status: stopped, tempo: defaultTempo}
	var since int64
	err := tx.QueryRow(ctx, "SELECT version, status, tempo, position, since, node FROM hoot_projects WHERE name = $1", name).
		Scan(&p.version, &p.status, &p.tempo, &p.from, &since, &p.node)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}
	p.since = time.Unix(0, since)
	return p, err
}

// save writes the state of a project that was changed.
func (p *project) save(ctx context.Context, tx *db.Tx) error {
	if p.version == 0 {
		if err := checkCount(ctx, tx); err != nil {
			return err
		}
		p.version = p.since.UnixNano() // later than those of a deleted project of this name
	}
	p.version++
	_, err := tx.Exec(ctx, `INSERT INTO hoot_projects (name, version, status, tempo, position, since, node, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, status = excluded.status, tempo = excluded.tempo, position = excluded.position,
			since = excluded.since, node = excluded.node, updated_at = excluded.updated_at`,
		p.name, p.version, p.status, p.tempo, p.from, p.since.UnixNano(), p.node, p.since.UnixNano())
	return err
}

func checkCount(ctx context.Context, tx *db.Tx) error {
	var count int
	if err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM hoot_projects").Scan(&count); err != nil {
		return err
	}
	if count >= maxProjects {
		return fault.New(fault.Limit, "there are %d projects", count).WithHint("delete some with garden_delete_project")
	}
	return nil
}

// projectNames returns the names of all stored projects.
func projectNames(ctx context.Context, tx *db.Tx) ([]string, error) {
	return db.All(ctx, tx, db.Column[string], "SELECT name FROM hoot_projects ORDER BY name")
}

// known returns an error if a project is not stored. The default project need not be.
func (p *project) known(ctx context.Context, tx *db.Tx) error {
	if p.version > 0 || p.name == DefaultProject {
		return nil
	}
	names, err := projectNames(ctx, tx)
	if err != nil {
		return err
	}
	missing := fault.New(fault.NotFound, "there is no project %q", p.name)
	if near := suggest.Names(p.name, names, 3); len(near) > 0 {
		return missing.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return missing.WithHint("garden_projects lists them; garden_open creates one")
}

// projectOf returns the project that a call is about: the one it names, the one that its
// session opened, or the default.
func (h *Backend) projectOf(ctx context.Context, call tool.Call, named string) (string, error) {
	if named != "" {
		return named, checkProject(named)
	}
	session := sessionOf(call)
	if session == "" {
		return DefaultProject, nil
	}
	name := DefaultProject
	err := h.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, "SELECT project FROM hoot_project_sessions WHERE session = $1", session).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return name, err
}

// sessionOf is the caller for whom a project can be opened: a session, or else the ID of a
// principal. It is "" if calls cannot be told apart.
func sessionOf(call tool.Call) string {
	if call.Caller == nil {
		return ""
	}
	return strings.TrimPrefix(call.Caller.ID, "user:")
}

// remember makes a project that of a session.
func remember(ctx context.Context, tx *db.Tx, session, name string, now time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO hoot_project_sessions (session, project, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (session) DO UPDATE SET project = excluded.project, updated_at = excluded.updated_at`, session, name, now.UnixNano())
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM hoot_project_sessions WHERE updated_at < COALESCE(
		(SELECT updated_at FROM hoot_project_sessions ORDER BY updated_at DESC LIMIT 1 OFFSET $1), 0)`, maxSessions-1)
	return err
}

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
	return g, database.Exec(ctx, "UPDATE hoot_projects SET status = $1, version = version + 1 WHERE status = $2 AND node = $3", paused, playing, o.Node)
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

// stateAfter is the state of a project that was changed.
func (g *gardens) stateAfter(p *project, err error) (GardenState, error) {
	if err != nil {
		return GardenState{}, err
	}
	return g.stateOf(p), nil
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
