package node

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Info describes a node.
type Info struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	State    string        `json:"state"` // up, draining, silent
	Address  string        `json:"address,omitempty"`
	Version  string        `json:"version"`
	Started  time.Time     `json:"started"`
	LastSeen time.Time     `json:"heard"`   // last heartbeat, by the database's clock
	Skew     time.Duration `json:"skew_ns"` // how far its own clock is ahead of the database's
	Watching bool          `json:"-"`
	// Load is the load that the node last reported.
	Load json.RawMessage `json:"load,omitempty"`

	slot int
}

type (
	// Joined is published when a node registers.
	Joined struct {
		Node string `json:"id"`
		Name string `json:"name"`
	}
	// Gone is published when a node has found another one dead.
	Gone struct {
		Node     string `json:"id"`
		Name     string `json:"name"`
		SilentMS int64  `json:"silent_ms"`
	}
)

func (Joined) EventType() string  { return "node.joined" }
func (j Joined) EventKey() string { return j.Node }
func (Gone) EventType() string    { return "node.gone" }
func (g Gone) EventKey() string   { return g.Node }

const columns = `id, name, slot, state, address, version, started, beat, skew, watches, load`

func scan(row db.Scanner) (i Info, err error) {
	var started, beat, skew int64
	var load string
	err = row.Scan(&i.ID, &i.Name, &i.slot, &i.State, &i.Address, &i.Version, &started, &beat, &skew, &i.Watching, &load)
	i.Started, i.LastSeen, i.Skew = time.UnixMicro(started).UTC(), time.UnixMicro(beat).UTC(), time.Duration(skew)*time.Microsecond
	if json.Valid([]byte(load)) {
		i.Load = json.RawMessage(load)
	}
	return i, err
}

// readAll reads all rows and the database's clock.
func readAll(ctx context.Context, d *db.DB) (all []Info, now time.Time, err error) {
	err = d.Read(ctx, func(tx *db.Tx) error {
		if now, err = tx.Now(ctx); err != nil {
			return err
		}
		all, err = db.All(ctx, tx, scan, `SELECT `+columns+` FROM nodes ORDER BY started, id`)
		return err
	})
	return all, now, err
}

// List returns all nodes, the oldest first. The caller need not be a node.
func List(ctx context.Context, d *db.DB) ([]Info, error) {
	if err := d.Migrate(ctx, "node", Migrations); err != nil {
		return nil, err
	}
	all, now, err := readAll(ctx, d)
	for i := range all {
		if all[i].frozen(now) {
			all[i].State = "silent"
		}
	}
	return all, err
}

// IsAlive returns a function that tells whether a node is among those that share the
// database.
func IsAlive(d *db.DB) func(ctx context.Context, id string) (bool, error) {
	return func(ctx context.Context, id string) (bool, error) {
		list, err := List(ctx, d)
		return slices.ContainsFunc(list, func(i Info) bool { return i.ID == id && i.State != "silent" }), err
	}
}

// frozen reports whether a node that has sent heartbeats before stopped for long.
func (i Info) frozen(now time.Time) bool {
	return i.LastSeen.After(i.Started) && now.Sub(i.LastSeen) > frozenAfter
}

// Running returns the names of the nodes that run.
func Running(ctx context.Context, d *db.DB) (names []string, err error) {
	nodes, err := List(ctx, d)
	for _, n := range nodes {
		if n.State != "silent" {
			names = append(names, n.Name)
		}
	}
	return names, err
}

// Load is how much a node has to do.
type Load struct {
	CallsPerMinute uint64 `json:"calls_per_minute"` // of tools
	InFlight       int    `json:"in_flight"`
	Jobs           int    `json:"jobs"` // running here
	Sessions       int    `json:"sessions"`
	Streams        int64  `json:"streams"` // readers of events
	Goroutines     int    `json:"goroutines"`
	MemoryMB       uint64 `json:"memory_mb"`
}

// AddProcess adds what the runtime knows of this process.
func (l *Load) AddProcess() {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	l.Goroutines = runtime.NumGoroutine()
	l.MemoryMB = (samples[0].Value.Uint64() - samples[1].Value.Uint64()) >> 20
}

// RateMeter measures how much a counter grew in the last minute. The zero value is ready
// to use.
type RateMeter struct {
	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at    time.Time
	total uint64
}

// LastMinute records the counter and returns how much it grew within a minute.
func (m *RateMeter) LastMinute(now time.Time, total uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) >= time.Minute {
		m.samples = m.samples[1:]
	}
	if len(m.samples) == 0 || now.Sub(m.samples[len(m.samples)-1].at) >= time.Second/2 {
		m.samples = append(m.samples, sample{now, total})
	}
	return total - min(total, m.samples[0].total)
}
