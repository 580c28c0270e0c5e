package spending_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs all tests with a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestReport, TestBudgets, TestBudgetOfSeveralNodes, TestOrganisationsHaveTheirOwnBudgets)
}

func opened(t *testing.T, url string, b spending.Budgets, at time.Time) (*spending.Store, *clock.Virtual) {
	t.Helper()
	now := clock.NewVirtual(at)
	store, err := spending.Open(t.Context(), dbtest.OpenWith(t, url, db.Options{}), spending.Options{Budgets: b, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	return store, now
}

var evening = time.Date(2026, 11, 17, 20, 0, 0, 0, time.UTC)

func spend(t *testing.T, s *spending.Store, turn, org, user string, u llm.Usage) {
	t.Helper()
	if err := s.Spend(t.Context(), agent.Spender{Turn: turn, Org: org, User: user}, "claude", u); err != nil {
		t.Fatal(err)
	}
}

// TestOrganisationsHaveTheirOwnBudgets checks that somebody who has the same name in two
// organisations spends the budgets of the one in which they act.
func TestOrganisationsHaveTheirOwnBudgets(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, dbtest.Fresh(t), spending.Budgets{PersonDaily: 1, OrgDaily: 3}, evening)
	refused := func(org, user string) string {
		t.Helper()
		err := s.Check(t.Context(), agent.Spender{Turn: "next", Org: org, User: user})
		if err != nil && fault.CodeOf(err) != fault.Limit {
			t.Fatal(err)
		}
		return fmt.Sprint(err)
	}
	spend(t, s, "t1", "acme", "ann", llm.Usage{Cost: 1})
	if got := refused("acme", "ann"); !strings.Contains(got, "ann") {
		t.Errorf("ann in acme: %s", got)
	}
	for _, org := range []string{"other", ""} {
		if got := refused(org, "ann"); got != "<nil>" {
			t.Errorf("ann in %q: %s", org, got)
		}
	}
	spend(t, s, "t2", "acme", "bob", llm.Usage{Cost: 2})
	if got := refused("acme", "eve"); !strings.Contains(got, "acme") {
		t.Errorf("the organisation: %s", got)
	}
	if got := refused("other", "eve"); got != "<nil>" {
		t.Errorf("another organisation: %s", got)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	s, now := opened(t, dbtest.Fresh(t), spending.Budgets{PersonDaily: 9}, evening)
	spend(t, s, "t1", "acme", "ann", llm.Usage{Input: 10, Output: 2, CacheRead: 100, CacheWrite: 30, Cost: 0.5})
	spend(t, s, "t1", "acme", "ann", llm.Usage{Input: 1, Output: 1, Cost: 0.25})
	spend(t, s, "t2", "acme", "bob", llm.Usage{Input: 1, Cost: 4})
	spend(t, s, "t3", "other", "ann", llm.Usage{Input: 1000})
	now.Advance(24 * time.Hour)
	gone, cancel := context.WithCancel(t.Context())
	cancel() // a cancelled turn has used something too
	if err := s.Spend(gone, agent.Spender{Turn: "t4", Org: "acme", User: "ann"}, "haiku", llm.Usage{Output: 7, Cost: 0.125}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		query spending.Query
		want  string
	}{
		"all": {spending.Query{Org: "acme", Since: evening, Turns: 9}, `3 turns, 12 10 100 30, 4.875
2026-11-18: 1 turns, 0 7 0 0, 0.125
2026-11-17: 2 turns, 12 3 100 30, 4.75
bob: 1 turns, 1 0 0 0, 4
ann: 2 turns, 11 10 100 30, 0.875
t4 ann haiku 1: 0 7 0 0, 0.125
t1 ann claude 2: 11 3 100 30, 0.75
t2 bob claude 1: 1 0 0 0, 4
`},
		"one person": {spending.Query{Org: "acme", User: "ann", Since: evening, Turns: 1}, `2 turns, 11 10 100 30, 0.875
2026-11-18: 1 turns, 0 7 0 0, 0.125
2026-11-17: 1 turns, 11 3 100 30, 0.75
ann: 2 turns, 11 10 100 30, 0.875
t4 ann haiku 1: 0 7 0 0, 0.125
person_daily_usd 0.125 of 9
`},
		"one day": {spending.Query{Org: "acme", User: "ann", Since: evening.Add(24 * time.Hour), Turns: 9}, `1 turns, 0 7 0 0, 0.125
2026-11-18: 1 turns, 0 7 0 0, 0.125
ann: 1 turns, 0 7 0 0, 0.125
t4 ann haiku 1: 0 7 0 0, 0.125
person_daily_usd 0.125 of 9
`},
		"nothing": {spending.Query{Org: "acme", User: "eve", Since: evening, Turns: 9}, "0 turns, 0 0 0 0, 0\nperson_daily_usd 0 of 9\n"},
	} {
		report, err := s.Report(t.Context(), tt.query)
		if got := text(report, tt.query.User != ""); err != nil || got != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, tt.want)
		}
	}
	now.Advance(100 * 24 * time.Hour)
	spend(t, s, "t5", "acme", "ann", llm.Usage{})
	if report, err := s.Report(t.Context(), spending.Query{Org: "acme", Since: evening, Turns: 9}); err != nil || len(report.Turns) != 1 || len(report.Days) != 3 {
		t.Errorf("after 100 days: %+v, %v", report, err)
	}
}

// text returns a report as lines.
func text(r spending.Report, budgets bool) string {
	var out strings.Builder
	tokens := func(u llm.Usage) string {
		return fmt.Sprintf("%d %d %d %d, %v\n", u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost)
	}
	fmt.Fprintf(&out, "%d turns, %s", r.Total.Turns, tokens(r.Total.Usage))
	for _, d := range r.Days {
		fmt.Fprintf(&out, "%s: %d turns, %s", d.Day, d.Turns, tokens(d.Usage))
	}
	for _, p := range r.People {
		fmt.Fprintf(&out, "%s: %d turns, %s", p.User, p.Turns, tokens(p.Usage))
	}
	for _, t := range r.Turns {
		fmt.Fprintf(&out, "%s %s %s %d: %s", t.ID, t.User, t.Model, t.Requests, tokens(t.Usage))
	}
	for _, b := range r.Budgets {
		if budgets {
			fmt.Fprintf(&out, "%s %v of %v\n", b.Setting, b.Used, b.Limit)
		}
	}
	return out.String()
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	ann := agent.Spender{Turn: "now", Org: "acme", User: "ann"}
	for name, tt := range map[string]struct {
		budgets spending.Budgets
		want    string // in the refusal; empty means none
		after   time.Duration
	}{
		"none":                   {spending.Budgets{}, "", 0},
		"a day's cost":           {spending.Budgets{PersonDaily: 2}, "the budget of ann for today is used up: 2.00 of 2.00 US dollars", 4 * time.Hour},
		"more than that":         {spending.Budgets{PersonDaily: 2.5}, "", 0},
		"a month's cost":         {spending.Budgets{PersonMonthly: 5}, "of ann for this month is used up: 5.00 of 5.00", 13*24*time.Hour + 4*time.Hour},
		"not last month's":       {spending.Budgets{PersonMonthly: 5.5}, "", 0},
		"a day's tokens":         {spending.Budgets{PersonDailyTokens: 40}, "40 of 40 tokens", 4 * time.Hour},
		"fewer tokens":           {spending.Budgets{PersonDailyTokens: 41}, "", 0},
		"the organisation":       {spending.Budgets{OrgDaily: 3}, "of the organisation acme for today is used up: 3.00", 4 * time.Hour},
		"the organisation month": {spending.Budgets{OrgMonthly: 6}, "organisation acme for this month", 13*24*time.Hour + 4*time.Hour},
		"its tokens":             {spending.Budgets{OrgDailyTokens: 50}, "50 of 50 tokens", 4 * time.Hour},
		"more for it":            {spending.Budgets{OrgDaily: 3.5, OrgMonthly: 6.5, OrgDailyTokens: 51}, "", 0},
		"all":                    {spending.Budgets{Daily: 7}, "of all users for today", 4 * time.Hour},
		"all in a month":         {spending.Budgets{Monthly: 10}, "of all users for this month", 13*24*time.Hour + 4*time.Hour},
		"all tokens":             {spending.Budgets{DailyTokens: 51}, "51 of 51 tokens", 4 * time.Hour},
	} {
		s, now := opened(t, dbtest.Fresh(t), tt.budgets, time.Date(2026, 10, 31, 20, 0, 0, 0, time.UTC))
		spend(t, s, "t0", "acme", "ann", llm.Usage{Cost: 100})
		now.Advance(24 * time.Hour) // 1 November
		spend(t, s, "t1", "acme", "ann", llm.Usage{Cost: 3})
		now.Advance(16 * 24 * time.Hour)
		spend(t, s, "t2", "acme", "ann", llm.Usage{Input: 10, Output: 10, CacheRead: 10, CacheWrite: 10, Cost: 2})
		spend(t, s, "t3", "acme", "bob", llm.Usage{Input: 10, Cost: 1})
		spend(t, s, "t4", "other", "ann", llm.Usage{Input: 1, Cost: 4})
		err := s.Check(t.Context(), ann)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != fault.Limit) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if after, _ := principal.RetryAfter(err); after != tt.after {
			t.Errorf("%s: again after %v, want %v", name, after, tt.after)
		}
	}
}

// TestSmallBudgets checks that the refusal of a small budget shows what was used.
func TestSmallBudgets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		budget, cost float64
		want         string
	}{
		{0.5, 0.75, "0.75 of 0.50 US dollars"}, {0.001, 0.0014, "0.0014 of 0.0010 US dollars"}, {0.00003, 0.25, "0.25 of 0.000030 US dollars"}, {12, 12.345, "12.35 of 12.00 US dollars"},
	} {
		s, _ := opened(t, dbtest.Fresh(t), spending.Budgets{PersonDaily: tt.budget}, time.Date(2026, 10, 31, 20, 0, 0, 0, time.UTC))
		spend(t, s, "t0", "acme", "ann", llm.Usage{Cost: tt.cost})
		if err := s.Check(t.Context(), agent.Spender{Turn: "t1", Org: "acme", User: "ann"}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v of %v: %v, want %q", tt.cost, tt.budget, err, tt.want)
		}
	}
}

// TestBudgetOfSeveralNodes checks that nodes share their budgets and lose nothing.
func TestBudgetOfSeveralNodes(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	var nodes []*spending.Store
	for range 3 {
		s, _ := opened(t, url, spending.Budgets{PersonDailyTokens: 60}, evening)
		nodes = append(nodes, s)
	}
	var work sync.WaitGroup
	for n, s := range nodes {
		work.Go(func() {
			for i := range 20 {
				who := agent.Spender{Turn: fmt.Sprint("turn", i%5), Org: "acme", User: "ann"} // the same turns, as after a takeover
				if err := s.Spend(t.Context(), who, "m", llm.Usage{Input: 1}); err != nil {
					t.Errorf("node %d: %v", n, err)
				}
			}
		})
	}
	work.Wait()
	for _, s := range nodes {
		if err := s.Check(t.Context(), agent.Spender{Org: "acme", User: "ann"}); fault.CodeOf(err) != fault.Limit {
			t.Errorf("a node allows more: %v", err)
		}
	}
	report, err := nodes[0].Report(t.Context(), spending.Query{Org: "acme", Since: evening, Turns: 9})
	if err != nil || report.Total.Input != 60 || report.Total.Turns != 5 || len(report.Turns) != 5 || report.Turns[0].Requests != 12 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestBudgetsAreChecked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		budgets spending.Budgets
		priced  bool
		want    string
	}{
		"none":           {spending.Budgets{}, false, ""},
		"priced":         {spending.Budgets{Daily: 1}, true, ""},
		"not priced":     {spending.Budgets{Daily: 1}, false, "chat.budget.daily_usd: the price of the model is not known"},
		"tokens":         {spending.Budgets{DailyTokens: 1}, false, ""},
		"less than zero": {spending.Budgets{OrgMonthly: -1}, true, "chat.budget.org_monthly_usd: -1 is too small"},
	} {
		if err := tt.budgets.Check(tt.priced); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
