// Package usage learns from what callers do after they have searched for tools: words of
// a search are remembered for the tool that was called after it, so that the next search
// with these words finds it.
//
// What is learned belongs to the caller. Members of an organization also profit from each
// other, but only from what at least two others agree on, so that no member alone can
// change what the others find. Without an organization nobody profits from anybody else.
//
// Everything is stored in the database and read from there by each search, so that it is
// the same on all nodes. Only the searches that wait for a call are held in memory: a call
// on another node than its search teaches nothing.
package usage

import (
	"context"
	"embed"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options configure a store. Zero fields mean the default beside them.
type Options struct {
	HalfLife time.Duration // after which a use counts half: 30 days
	Words    int           // that are stored per caller, each per tool: 2,000
	AllWords int           // that are stored of all callers of an organisation: 200,000
	Window   time.Duration // in which a call belongs to a search: 10 minutes
	Timeout  time.Duration // for reading the database in a search: 150 ms
	// Off means that nothing is learned or recalled, and that Open erases what was learned.
	Off bool
	// Ignore tells from which tools nothing is learned, such as those that call others.
	Ignore func(tool.Ref) bool // none
	Clock  clock.Clock         // the system clock
	Log    *slog.Logger        // discards
}

func (o Options) orDefault() Options {
	if o.HalfLife == 0 {
		o.HalfLife = 30 * 24 * time.Hour
	}
	if o.Words == 0 {
		o.Words = 2000
	}
	if o.AllWords == 0 {
		o.AllWords = 200_000
	}
	if o.Window == 0 {
		o.Window = 10 * time.Minute
	}
	if o.Timeout == 0 {
		o.Timeout = 150 * time.Millisecond
	}
	if o.Ignore == nil {
		o.Ignore = func(tool.Ref) bool { return false }
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store holds what was learned. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options
	waiting searches

	mu      sync.Mutex // guards what follows
	idle    *sync.Cond // signals that nothing is being written
	lessons []lesson   // not written yet
	writing bool
	written int // lessons, since the start
	wait    sync.WaitGroup
}

// Open opens the store in a database and migrates its table. Close waits until everything
// is written.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if err := database.Migrate(ctx, "usage", Migrations); err != nil {
		return nil, err
	}
	s := &Store{db: database, options: o.orDefault(), waiting: searches{byCaller: map[caller][]*pending{}}}
	s.idle = sync.NewCond(&s.mu)
	if o.Off {
		_, err := s.Erase(ctx)
		return s, err
	}
	return s, nil
}

// Wait waits until everything that was learned so far is written.
func (s *Store) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing {
		s.idle.Wait()
	}
}

// Close waits until everything that was learned is written. Nothing may be learned
// afterwards.
func (s *Store) Close() { s.wait.Wait() }

// caller is whose usage it is.
type caller struct{ org, owner string }

func callerOf(ctx context.Context) caller {
	who := principal.Of(ctx)
	owner := who.ID
	if who.User != "" {
		owner += " " + who.User
	}
	return caller{who.ActingOrg(), owner}
}
