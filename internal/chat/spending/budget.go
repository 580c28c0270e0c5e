package spending

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/store/db"
)

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
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, query, args...).Scan(&so.today, &so.month, &so.tokens)
	})
	return so, err
}

// refusal is the error of a budget that is used up.
func (s State) refusal(now time.Time) error {
	next := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	period := "today"
	if s.budget.monthly {
		next, period = time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC), "this month"
	}
	amount := fmt.Sprintf("%.2f of %.2f US dollars", s.Used, s.Limit)
	if s.budget.tokens {
		amount = fmt.Sprintf("%.0f of %.0f tokens", s.Used, s.Limit)
	}
	return fault.New(fault.Limit, "the budget of %s for %s is used up: %s", s.of, period, amount).
		WithHint("try again after %s, or raise chat.budget.%s", next.Format("2006-01-02 15:04 MST"), s.Setting).
		WithDetails(map[string]any{"limit": s.Limit, "used": s.Used, "setting": s.Setting, "retry_after_ms": next.Sub(now).Milliseconds()})
}
