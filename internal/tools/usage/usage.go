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
	"cmp"
	"context"
	"embed"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
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
	o.HalfLife = cmp.Or(o.HalfLife, 30*24*time.Hour)
	o.Words = cmp.Or(o.Words, 2000)
	o.AllWords = cmp.Or(o.AllWords, 200_000)
	o.Window = cmp.Or(o.Window, 10*time.Minute)
	o.Timeout = cmp.Or(o.Timeout, 150*time.Millisecond)
	if o.Ignore == nil {
		o.Ignore = func(tool.Ref) bool { return false }
	}
	o.Clock = cmp.Or(o.Clock, clock.Real())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
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

// Limits of what is stored.
const (
	mostWeight  = 8   // of a word, however often the tool was called
	mostLessons = 256 // that wait to be written; further ones are dropped
	pruneEvery  = 16  // lessons
	halfLives   = 6   // after which a word that is not used is removed
)

// learn stores lessons without blocking.
func (s *Store) learn(lessons []lesson) {
	if len(lessons) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lessons = append(s.lessons, lessons[:min(len(lessons), mostLessons-len(s.lessons))]...)
	if s.writing {
		return
	}
	s.writing = true
	s.wait.Go(func() {
		for s.write(context.Background()) {
		}
	})
}

// write writes the lessons that wait; false when there are none.
func (s *Store) write(ctx context.Context) bool {
	s.mu.Lock()
	lessons := s.lessons
	s.lessons = nil
	prune := s.written/pruneEvery != (s.written+len(lessons))/pruneEvery
	s.written += len(lessons)
	s.writing = len(lessons) > 0
	s.mu.Unlock()
	if len(lessons) == 0 {
		s.idle.Broadcast()
		return false
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		for i := range lessons {
			if err := s.store(ctx, tx, &lessons[i]); err != nil {
				return err
			}
		}
		if prune {
			return s.prune(ctx, tx, orgsOf(lessons))
		}
		return nil
	})
	if err != nil {
		s.options.Log.WarnContext(ctx, "cannot write what searches taught", "error", err)
	}
	return true
}

// word is a stored word of a tool.
type word struct {
	text   string
	weight float64
	used   time.Time
}

// store adds a lesson to what is known of the tool, and forgets what belongs to another
// definition of it.
func (s *Store) store(ctx context.Context, tx *db.Tx, l *lesson) error {
	if _, err := tx.Exec(ctx, `DELETE FROM tool_usage WHERE org = $1 AND owner = $2 AND space = $3 AND tool = $4 AND definition <> $5`,
		l.caller.org, l.caller.owner, l.ref.Space, l.ref.Name, l.definition); err != nil {
		return err
	}
	known, err := s.known(ctx, tx, l)
	if err != nil {
		return err
	}
	for _, text := range l.words {
		weight := l.credit
		if w, ok := known[text]; ok {
			weight += s.decayed(w.weight, w.used, l.at)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO tool_usage (org, owner, space, tool, word, definition, weight, used)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (org, owner, word, space, tool) DO UPDATE SET weight = excluded.weight, used = excluded.used`,
			l.caller.org, l.caller.owner, l.ref.Space, l.ref.Name, text, l.definition, min(weight, mostWeight), l.at.UnixMicro()); err != nil {
			return err
		}
	}
	return s.limit(ctx, tx, l.caller)
}

// known returns the words of the lesson's tool.
func (s *Store) known(ctx context.Context, tx *db.Tx, l *lesson) (map[string]word, error) {
	rows, err := db.All(ctx, tx, func(row db.Scanner) (w word, err error) {
		var used int64
		err = row.Scan(&w.text, &w.weight, &used)
		w.used = time.UnixMicro(used)
		return w, err
	}, `SELECT word, weight, used FROM tool_usage WHERE org = $1 AND owner = $2 AND space = $3 AND tool = $4`,
		l.caller.org, l.caller.owner, l.ref.Space, l.ref.Name)
	known := map[string]word{}
	for _, w := range rows {
		known[w.text] = w
	}
	return known, err
}

// decayed is what a weight is worth later.
func (s *Store) decayed(weight float64, since, now time.Time) float64 {
	age := max(0, now.Sub(since))
	return weight * math.Exp2(-float64(age)/float64(s.options.HalfLife))
}

// limit removes the words of a caller beyond the limit, those first that were not used for
// the longest time.
func (s *Store) limit(ctx context.Context, tx *db.Tx, who caller) error {
	_, err := tx.Exec(ctx, `DELETE FROM tool_usage WHERE org = $1 AND owner = $2 AND used <
		(SELECT used FROM tool_usage WHERE org = $3 AND owner = $4 ORDER BY used DESC LIMIT 1 OFFSET $5)`,
		who.org, who.owner, who.org, who.owner, s.options.Words-1)
	return err
}

// orgsOf lists the organisations of those who taught the lessons.
func orgsOf(lessons []lesson) (orgs []string) {
	for i := range lessons {
		if org := lessons[i].caller.org; !slices.Contains(orgs, org) {
			orgs = append(orgs, org)
		}
	}
	return orgs
}

// prune removes the words that are too old, and those of organisations that have too many:
// however much one learns, others forget nothing for it.
func (s *Store) prune(ctx context.Context, tx *db.Tx, orgs []string) error {
	oldest := s.options.Clock.Now().Add(-halfLives * s.options.HalfLife).UnixMicro()
	_, err := tx.Exec(ctx, `DELETE FROM tool_usage WHERE used < $1`, oldest)
	for _, org := range orgs {
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM tool_usage WHERE org = $1 AND used <
			(SELECT used FROM tool_usage WHERE org = $2 ORDER BY used DESC LIMIT 1 OFFSET $3)`, org, org, s.options.AllWords-1)
	}
	return err
}

// Forget erases what was learned from the caller of ctx, and returns how many words of
// tools that were.
func (s *Store) Forget(ctx context.Context) (int64, error) {
	who := callerOf(ctx)
	s.waiting.mu.Lock()
	delete(s.waiting.byCaller, who)
	s.waiting.mu.Unlock()
	s.Wait() // what is being written would come after
	return erase(ctx, s.db, `DELETE FROM tool_usage WHERE org = $1 AND owner = $2`, who.org, who.owner)
}

// Erase erases what was learned from all callers, and returns how many words that were.
func (s *Store) Erase(ctx context.Context) (int64, error) {
	s.waiting.mu.Lock()
	clear(s.waiting.byCaller)
	s.waiting.mu.Unlock()
	s.Wait()
	return erase(ctx, s.db, `DELETE FROM tool_usage`)
}

func erase(ctx context.Context, database *db.DB, query string, args ...any) (count int64, err error) {
	err = database.Write(ctx, func(tx *db.Tx) error {
		count, err = tx.Exec(ctx, query, args...)
		return err
	})
	return count, err
}

// Personal lists the tables with which tools somebody used.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "tool_usage", Where: "owner LIKE '%' || PERSON"},
	}
}
