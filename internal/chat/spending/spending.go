// Package spending counts the tokens and the cost of answers by turn, person and day, and
// refuses requests to the model when a budget is used up. What is counted is in the
// database, so that budgets apply to all nodes together.
package spending

import (
	"cmp"
	"context"
	"embed"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Migrate makes the tables.
func Migrate(ctx context.Context, database *db.DB) error {
	return database.Migrate(ctx, "spending", Migrations)
}

// Options are the options of a Store.
type Options struct {
	Budgets Budgets
	Clock   clock.Clock // nil means the real one
}

// Store counts usage. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	budgets []budget
	clock   clock.Clock
}

// Open migrates the tables.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return &Store{db: database, budgets: o.Budgets.list(), clock: o.Clock}, Migrate(ctx, database)
}

// defaultOrg is the organisation of people for whom none is given.
const defaultOrg = "default"

// keepTurns is how long single turns are kept; days are kept forever.
const keepTurns = 90 * 24 * time.Hour

func dayOf(t time.Time) int64 { return t.Unix() / int64((24 * time.Hour).Seconds()) }

// Spend counts one request to the model. It does so also if ctx is cancelled: the
// tokens are used.
func (s *Store) Spend(ctx context.Context, who agent.Spender, model string, u llm.Usage) error {
	ctx = context.WithoutCancel(ctx)
	org, now := cmp.Or(who.Org, defaultOrg), s.clock.Now().UTC()
	return s.db.Write(ctx, func(tx *db.Tx) error {
		var requests int64
		err := tx.QueryRow(ctx, `INSERT INTO spending_turns (id, org, person, model, requests, input, output, cache_read, cache_write, cost, began)
			VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8, $9, $10)
			ON CONFLICT (id) DO UPDATE SET requests = spending_turns.requests + 1, model = excluded.model,
				input = spending_turns.input + excluded.input, output = spending_turns.output + excluded.output,
				cache_read = spending_turns.cache_read + excluded.cache_read, cache_write = spending_turns.cache_write + excluded.cache_write,
				cost = spending_turns.cost + excluded.cost
			RETURNING requests`,
			who.Turn, org, who.User, model, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost, now.UnixMicro()).Scan(&requests)
		if err != nil {
			return err
		}
		turns := int64(0)
		if requests == 1 {
			turns = 1
			if _, err := tx.Exec(ctx, `DELETE FROM spending_turns WHERE began < $1`, now.Add(-keepTurns).UnixMicro()); err != nil {
				return err
			}
		}
		return PersonDay{Org: org, User: who.User, Day: dayOf(now), Spent: Spent{turns, u}}.Add(ctx, tx)
	})
}

// PersonDay is what a person used on a day, counted from 1970.
type PersonDay struct {
	Org, User string
	Day       int64
	Spent
}

// Add counts it.
func (f PersonDay) Add(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO spending_days (org, person, day, turns, input, output, cache_read, cache_write, cost)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (org, person, day) DO UPDATE SET turns = spending_days.turns + excluded.turns, input = spending_days.input + excluded.input,
			output = spending_days.output + excluded.output, cache_read = spending_days.cache_read + excluded.cache_read,
			cache_write = spending_days.cache_write + excluded.cache_write, cost = spending_days.cost + excluded.cost`,
		f.Org, f.User, f.Day, f.Turns, f.Input, f.Output, f.CacheRead, f.CacheWrite, f.Cost)
	return err
}
