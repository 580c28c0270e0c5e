package spending

import (
	"cmp"
	"context"
	"time"

	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/store/db"
)

// Spent is what turns have used.
type Spent struct {
	Turns int64 `json:"turns"`
	llm.Usage
}

// Day is the usage of one day.
type Day struct {
	Day string `json:"day" doc:"such as 2026-11-17, UTC"`
	Spent
}

// Person is the usage of one person.
type Person struct {
	User string `json:"user_id"`
	Spent
}

// Turn is the usage of one turn.
type Turn struct {
	ID       string    `json:"request_id"`
	User     string    `json:"user_id"`
	Began    time.Time `json:"began"`
	Model    string    `json:"model"`
	Requests int64     `json:"requests" doc:"to the model"`
	llm.Usage
}

// Report is the usage of an organisation or of one person.
type Report struct {
	Total   Spent    `json:"total"`
	Days    []Day    `json:"days" doc:"the newest first"`
	People  []Person `json:"people" doc:"the most expensive first, at most 1000"`
	Turns   []Turn   `json:"turns" doc:"the newest first; they are kept for 90 days"`
	Budgets []State  `json:"budgets"`
}

// Query says which usage to report.
type Query struct {
	Org   string
	User  string    // empty means all people of the organisation
	Since time.Time // the first day
	Turns int       // how many turns at most
}

const sums = `CAST(coalesce(sum(turns), 0) AS BIGINT), CAST(coalesce(sum(input), 0) AS BIGINT), CAST(coalesce(sum(output), 0) AS BIGINT),
	CAST(coalesce(sum(cache_read), 0) AS BIGINT), CAST(coalesce(sum(cache_write), 0) AS BIGINT), coalesce(sum(cost), 0)`

func (s *Spent) columns() []any {
	return []any{&s.Turns, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Cost}
}

// Report reports what was used.
func (s *Store) Report(ctx context.Context, q Query) (r Report, err error) {
	q.Org = cmp.Or(q.Org, defaultOrg)
	const these = ` FROM spending_days WHERE org = $1 AND ($2 = '' OR person = $2) AND day >= $3`
	args := []any{q.Org, q.User, dayOf(q.Since.UTC())}
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		if err := tx.QueryRow(ctx, `SELECT `+sums+these, args...).Scan(r.Total.columns()...); err != nil {
			return err
		}
		r.Days, err = db.All(ctx, tx, func(row db.Scanner) (d Day, err error) {
			var day int64
			err = row.Scan(append([]any{&day}, d.columns()...)...)
			d.Day = time.Unix(day*int64((24*time.Hour).Seconds()), 0).UTC().Format(time.DateOnly)
			return d, err
		}, `SELECT day, `+sums+these+` GROUP BY day ORDER BY day DESC`, args...)
		if err != nil {
			return err
		}
		r.People, err = db.All(ctx, tx, func(row db.Scanner) (p Person, err error) {
			return p, row.Scan(append([]any{&p.User}, p.columns()...)...)
		}, `SELECT person, `+sums+these+` GROUP BY person ORDER BY sum(cost) DESC, sum(input) + sum(output) DESC, person LIMIT 1000`, args...)
		if err != nil {
			return err
		}
		r.Turns, err = turnsOf(ctx, tx, q)
		return err
	})
	if err == nil {
		r.Budgets, err = s.States(ctx, q.Org, q.User)
	}
	return r, err
}

func turnsOf(ctx context.Context, tx *db.Tx, q Query) ([]Turn, error) {
	return db.All(ctx, tx, func(row db.Scanner) (t Turn, err error) {
		var began int64
		err = row.Scan(&t.ID, &t.User, &t.Model, &t.Requests, &t.Input, &t.Output, &t.CacheRead, &t.CacheWrite, &t.Cost, &began)
		t.Began = time.UnixMicro(began).UTC()
		return t, err
	}, `SELECT id, person, model, requests, input, output, cache_read, cache_write, cost, began FROM spending_turns
		WHERE org = $1 AND ($2 = '' OR person = $2) AND began >= $3 ORDER BY began DESC, id LIMIT $4`,
		q.Org, q.User, q.Since.UTC().Truncate(24*time.Hour).UnixMicro(), q.Turns)
}
