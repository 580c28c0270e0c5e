package conversation

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/store/db"
)

// Spent is what turns have used.
type Spent struct {
	User  string `json:"user_id,omitempty"`
	Turns int64  `json:"turns"`
	llm.Usage
}

const day = 24 * time.Hour

// countUsage counts what a turn used, except what was counted when it failed before.
func countUsage(ctx context.Context, tx *db.Tx, t *Turn, reply agent.Reply, at time.Time) error {
	p, u := t.Message.Person, reply.Usage
	if t.retried {
		u = u.Without(reply.Restored)
	}
	_, err := tx.Exec(ctx, `INSERT INTO talk_usage (org, person, day, turns, input, output, cache_read, cache_write, cost)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)
		ON CONFLICT (org, person, day) DO UPDATE SET turns = talk_usage.turns + 1, input = talk_usage.input + excluded.input,
			output = talk_usage.output + excluded.output, cache_read = talk_usage.cache_read + excluded.cache_read,
			cache_write = talk_usage.cache_write + excluded.cache_write, cost = talk_usage.cost + excluded.cost`,
		p.Org, p.User, at.Unix()/int64(day.Seconds()), u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost)
	return err
}

// Usage returns the usage of each of an organisation's people since a day, the largest
// first.
func (r *Service) Usage(ctx context.Context, org string, since time.Time) (list []Spent, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, func(row db.Scanner) (s Spent, err error) {
			return s, row.Scan(&s.User, &s.Turns, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Cost)
		}, `SELECT person, sum(turns), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost) FROM talk_usage
			WHERE org = $1 AND day >= $2 GROUP BY person ORDER BY sum(input) + sum(output) DESC, person LIMIT 1000`,
			org, since.Unix()/int64(day.Seconds()))
		return err
	})
	return list, err
}
