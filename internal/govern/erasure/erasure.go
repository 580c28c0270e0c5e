// Package erasure exports and erases what is stored about a person. An erasure is stored
// before it begins, and goes on after a crash until everything is gone. The audit log keeps
// what was done, under a pseudonym.
package erasure

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Part is something about people that is not in rows of tables alone: files, running work,
// the audit log.
type Part interface {
	// Export calls write for each thing of the person.
	Export(ctx context.Context, p personal.Person, write func(kind string, value any) error) error
	// Erase erases all of them. It may be called again after it failed or was interrupted.
	Erase(ctx context.Context, p personal.Person) error
}

// Options are the options of a Service.
type Options struct {
	People *people.Store
	Keys   *apikey.Store
	// Tables have the rows of people. Tables whose rows are found by those of another come
	// before it.
	Tables []personal.Table
	// Parts are erased before the tables.
	Parts []Part
	// Audit records that somebody was exported or erased.
	Audit func(ctx context.Context, action, subject string, detail []byte)
	Clock clock.Clock // nil: the machine's
	Log   *slog.Logger
}

// Service exports and erases people. It is safe for concurrent use.
type Service struct {
	db      *db.DB
	options Options
}

// Open creates the table. Run continues erasures that a crash interrupted.
func Open(ctx context.Context, store *db.DB, o Options) (*Service, error) {
	if err := store.Migrate(ctx, "erasure", Migrations); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{store, o}, nil
}

// pseudonymOf returns the name that stands for a person afterwards. It is always the same
// for one person, and does not lead back: ids of people are random and are erased.
func pseudonymOf(id string) string {
	sum := sha256.Sum256([]byte("erased person " + id))
	return "erased:" + hex.EncodeToString(sum[:8])
}

// find returns whose rows are meant by the id of a person.
func (s *Service) find(ctx context.Context, id string) (p personal.Person, err error) {
	list, err := s.options.People.List(ctx)
	if err != nil {
		return p, err
	}
	at := slices.IndexFunc(list, func(one people.Person) bool { return one.ID == id })
	if at < 0 {
		return p, fault.New(fault.NotFound, "no person %s", id).WithHint("`luanette people list` shows them")
	}
	p = personal.Person{ID: id, Name: list[at].Name, Pseudonym: pseudonymOf(id)}
	keys, err := s.options.Keys.List(ctx)
	for _, key := range keys {
		if key.Person == id {
			p.Principals = append(p.Principals, principal.KeyPrefix+key.ID())
		}
	}
	return p, err
}

// Erase erases a person and everything of theirs. If it returns an error, the erasure goes
// on in the background once it has begun.
func (s *Service) Erase(ctx context.Context, id string) (pseudonym string, err error) {
	p, err := s.find(ctx, id)
	if err != nil {
		return "", err
	}
	var stored string
	whole, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	ctx = context.WithoutCancel(ctx) // the person may be the one who asks, and is gone at once
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO erasures (person, whole, begun) VALUES ($1, $2, $3) ON CONFLICT (person) DO NOTHING", id, string(whole), s.options.Clock.Now().UnixMicro()); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT whole FROM erasures WHERE person = $1", id).Scan(&stored) // one that has begun knows of keys that it deleted
	})
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal([]byte(stored), &p); err != nil {
		return "", err
	}
	return p.Pseudonym, s.finish(ctx, p)
}

// maxPasses is how often the tables are gone through: what ran for the person when it was
// blocked may still write something.
const maxPasses = 5

// finish erases what is left of a person.
func (s *Service) finish(ctx context.Context, p personal.Person) error {
	if err := s.options.People.Block(ctx, p.ID); err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	for pass := 1; ; pass++ {
		count, err := s.pass(ctx, p)
		if err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "erase person %s", p.ID).WithHint("the server tries again by itself")
		}
		if count == 0 {
			break
		}
		if pass == maxPasses {
			return fault.New(fault.Unavailable, "something still writes for person %s", p.ID).WithHint("the server tries again by itself")
		}
	}
	return s.conclude(ctx, p)
}

// pass erases once, and returns how many rows there were.
func (s *Service) pass(ctx context.Context, p personal.Person) (count int64, err error) {
	for _, part := range s.options.Parts {
		if err := part.Erase(ctx, p); err != nil {
			return count, err
		}
	}
	tables, err := s.tables(ctx)
	if err != nil {
		return 0, err
	}
	for _, table := range tables {
		var n int64
		err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
			n, err = table.Erase(ctx, tx, p)
			return err
		})
		if count += n; err != nil {
			return count, err
		}
	}
	return count, nil
}

// tables returns the tables that exist: some parts of the server create theirs when they
// are first used.
func (s *Service) tables(ctx context.Context) (list []personal.Table, err error) {
	var names []string
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		names, err = tx.Tables(ctx)
		return err
	})
	for _, table := range s.options.Tables {
		if slices.Contains(names, table.Name) {
			list = append(list, table)
		}
	}
	return list, err
}

// conclude deletes the record of the erasure, and tells all nodes and the audit log.
func (s *Service) conclude(ctx context.Context, p personal.Person) error {
	var mine bool
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, "DELETE FROM erasures WHERE person = $1", p.ID)
		mine = n == 1
		return errors.Join(err, tx.Notify(people.Topic, ""), tx.Notify(apikey.Topic, ""))
	})
	if err != nil {
		return err
	}
	if err := errors.Join(s.options.People.Refresh(ctx), s.options.Keys.Refresh(ctx)); err != nil {
		return err
	}
	if mine {
		s.options.Audit(withoutPerson(ctx, p), "person.erase", p.Pseudonym, nil)
	}
	if err := s.db.Scrub(ctx); err != nil { // the rows are gone; the rest of them will be overwritten
		s.options.Log.WarnContext(ctx, "files of the database not scrubbed", "error", err)
	}
	return nil
}

// withoutPerson returns ctx in which somebody who erases themselves has the pseudonym.
func withoutPerson(ctx context.Context, p personal.Person) context.Context {
	if people.PersonOf(principal.Of(ctx)) == p.ID {
		return principal.With(ctx, principal.Principal{ID: p.Pseudonym, Name: p.Pseudonym})
	}
	return ctx
}

// retryInterval is how often erasures that are not finished are continued.
const retryInterval = time.Minute

// Run continues erasures that were interrupted, until ctx ends. Several nodes may do it at
// once.
func (s *Service) Run(ctx context.Context) {
	for s != nil {
		if err := s.Continue(ctx); err != nil && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "person not erased yet", "error", err)
		}
		if s.options.Clock.Sleep(ctx, retryInterval) != nil {
			return
		}
	}
}

// Continue finishes all erasures that have begun.
func (s *Service) Continue(ctx context.Context) error {
	var list []string
	list, err := db.Find(ctx, s.db, db.Column[string], "SELECT whole FROM erasures ORDER BY begun, person")
	for _, whole := range list {
		var p personal.Person
		problem := json.Unmarshal([]byte(whole), &p)
		if problem == nil {
			problem = s.finish(ctx, p)
		}
		err = errors.Join(err, problem)
	}
	return err
}
