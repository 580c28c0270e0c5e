// Package spending counts the tokens and the cost of answers by turn, person and day, and
// refuses requests to the model when a budget is used up. What is counted is in the
// database, so that budgets apply to all nodes together.
package spending

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

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
	return &Store{db: database, budgets: o.Budgets.list(), clock: o.Clock}, database.Migrate(ctx, "spending", Migrations)
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
		_, err = tx.Exec(ctx, `INSERT INTO spending_days (org, person, day, turns, input, output, cache_read, cache_write, cost)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (org, person, day) DO UPDATE SET turns = spending_days.turns + excluded.turns, input = spending_days.input + excluded.input,
				output = spending_days.output + excluded.output, cache_read = spending_days.cache_read + excluded.cache_read,
				cache_write = spending_days.cache_write + excluded.cache_write, cost = spending_days.cost + excluded.cost`,
			org, who.User, dayOf(now), turns, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost)
		return err
	})
}

// Budgets limit what may be used; zero means no limit. Days and months are those of UTC.
type Budgets struct {
	PersonDaily       float64 `toml:"person_daily_usd" help:"how much one user may spend in a day, in US dollars; 0 means no limit"`
	PersonMonthly     float64 `toml:"person_monthly_usd" help:"how much one user may spend in a month, in US dollars"`
	OrgDaily          float64 `toml:"org_daily_usd" help:"how much all users of one organisation may spend in a day, in US dollars"`
	OrgMonthly        float64 `toml:"org_monthly_usd" help:"how much all users of one organisation may spend in a month, in US dollars"`
	Daily             float64 `toml:"daily_usd" help:"how much all users may spend in a day, in US dollars"`
	Monthly           float64 `toml:"monthly_usd" help:"how much all users may spend in a month, in US dollars"`
	PersonDailyTokens int     `toml:"person_daily_tokens" help:"how many tokens one user may use in a day, cached ones included; 0 means no limit"`
	OrgDailyTokens    int     `toml:"org_daily_tokens" help:"how many tokens all users of one organisation may use in a day"`
	DailyTokens       int     `toml:"daily_tokens" help:"how many tokens all users may use in a day"`
}

// scope is whose usage a budget limits.
type scope int

const (
	person scope = iota
	organisation
	everybody
)

// budget is one limit.
type budget struct {
	setting string
	scope   scope
	monthly bool
	tokens  bool
	limit   float64
}

func (b Budgets) all() []budget {
	return []budget{
		{"person_daily_usd", person, false, false, b.PersonDaily},
		{"person_monthly_usd", person, true, false, b.PersonMonthly},
		{"person_daily_tokens", person, false, true, float64(b.PersonDailyTokens)},
		{"org_daily_usd", organisation, false, false, b.OrgDaily},
		{"org_monthly_usd", organisation, true, false, b.OrgMonthly},
		{"org_daily_tokens", organisation, false, true, float64(b.OrgDailyTokens)},
		{"daily_usd", everybody, false, false, b.Daily},
		{"monthly_usd", everybody, true, false, b.Monthly},
		{"daily_tokens", everybody, false, true, float64(b.DailyTokens)},
	}
}

// list returns the limits that are set.
func (b Budgets) list() (set []budget) {
	for _, one := range b.all() {
		if one.limit > 0 {
			set = append(set, one)
		}
	}
	return set
}

// Check refuses invalid limits. priced reports whether the price of the model is known:
// otherwise its cost is 0 and a limit of cost would never be reached.
func (b Budgets) Check(priced bool) error {
	for _, one := range b.all() {
		switch {
		case one.limit < 0:
			return fault.New(fault.Config, "chat.budget.%s: %v is too small", one.setting, one.limit).WithHint("use 0 for no limit")
		case one.limit > 0 && !one.tokens && !priced:
			return fault.New(fault.Config, "chat.budget.%s: the price of the model is not known", one.setting).
				WithHint("set it in [chat.prices], or limit tokens instead")
		}
	}
	return nil
}

// Check refuses a request to the model if a budget is used up. A request that was
// allowed may exceed it: its cost is known afterwards.
func (s *Store) Check(ctx context.Context, who agent.Spender) error {
	states, err := s.States(ctx, who.Org, who.User)
	if err != nil {
		return err
	}
	for _, state := range states {
		if state.Used >= state.Limit {
			return state.refusal(s.clock.Now().UTC())
		}
	}
	return nil
}

// State is a budget and how much of it is used.
type State struct {
	Setting string  `json:"setting"` // its name in [chat.budget]
	Limit   float64 `json:"limit"`
	Used    float64 `json:"used"`
	budget  budget
	of      string
}

// States returns the budgets that apply to a person.
func (s *Store) States(ctx context.Context, org, user string) ([]State, error) {
	var list []State
	org = cmp.Or(org, defaultOrg)
	spent := map[scope]spentSoFar{}
	for _, b := range s.budgets {
		so, known := spent[b.scope]
		if !known {
			var err error
			if so, err = s.spent(ctx, b.scope, org, user); err != nil {
				return nil, fault.Wrap(fault.CodeOf(err), err, "check the budget")
			}
			spent[b.scope] = so
		}
		of := map[scope]string{person: user, organisation: "the organisation " + org, everybody: "all users"}[b.scope]
		list = append(list, State{Setting: b.setting, Limit: b.limit, Used: so.of(b), budget: b, of: of})
	}
	return list, nil
}

// spentSoFar is what was used today and this month.
type spentSoFar struct {
	today, month float64 // US dollars
	tokens       int64   // today
}

func (s spentSoFar) of(b budget) float64 {
	switch {
	case b.tokens:
		return float64(s.tokens)
	case b.monthly:
		return s.month
	default:
		return s.today
	}
}

func (s *Store) spent(ctx context.Context, of scope, org, user string) (so spentSoFar, err error) {
	now := s.clock.Now().UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	query := `SELECT coalesce(sum(CASE WHEN day = $1 THEN cost ELSE 0 END), 0), coalesce(sum(cost), 0),
		CAST(coalesce(sum(CASE WHEN day = $1 THEN input + output + cache_read + cache_write ELSE 0 END), 0) AS BIGINT)
		FROM spending_days WHERE day >= $2`
	args := []any{dayOf(now), dayOf(first)}
	if of != everybody {
		query, args = query+` AND org = $3`, append(args, org)
	}
	if of == person {
		query, args = query+` AND person = $4`, append(args, user)
	}
	err = s.db.QueryRow(ctx, query, args...).Scan(&so.today, &so.month, &so.tokens)
	return so, err
}

// refusal is the error of a budget that is used up.
func (s State) refusal(now time.Time) error {
	next := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	period := "today"
	if s.budget.monthly {
		next, period = time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC), "this month"
	}
	amount := fmt.Sprintf("%s of %s US dollars", decimal(s.Used), decimal(s.Limit))
	if s.budget.tokens {
		amount = fmt.Sprintf("%.0f of %.0f tokens", s.Used, s.Limit)
	}
	return fault.New(fault.Limit, "the budget of %s for %s is used up: %s", s.of, period, amount).
		WithHint("try again after %s, or raise chat.budget.%s", next.Format("2006-01-02 15:04 MST"), s.Setting).
		WithDetails(map[string]any{"limit": s.Limit, "used": s.Used, "setting": s.Setting, "retry_after_ms": next.Sub(now).Milliseconds()})
}

// decimal writes an amount with cents, and a small one with two digits that are not zero.
func decimal(amount float64) string {
	digits := 2
	if amount > 0 {
		digits = max(digits, 1-int(math.Floor(math.Log10(amount))))
	}
	return strconv.FormatFloat(amount, 'f', digits, 64)
}

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

// Personal lists the tables with what conversations cost.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "spending_days", Where: "person = PERSON"},
		{Name: "spending_turns", Where: "person = PERSON"},
	}
}
