package script

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/cputime"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
)

// cpuBudget is CPU time of the organisation acme.
type cpuBudget struct {
	mu      sync.Mutex
	left    time.Duration
	used    time.Duration
	charges int
}

func (b *cpuBudget) Counts(org string) bool { return org == "acme" }

func (b *cpuBudget) Charge(_ context.Context, _ string, used time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += used
	b.charges++
	if b.left -= used; b.left <= 0 {
		return fault.New(fault.Limit, "no processor time is left").WithHint("try again tomorrow")
	}
	return nil
}

func ofAcme(ctx context.Context) context.Context {
	return principal.With(ctx, principal.Principal{ID: "key:a", Org: "acme"})
}

// TestScriptsEndWithoutProcessorTime checks that a script in progress ends when nothing is
// left for its organisation, that it cannot catch that, and that no other one starts.
func TestScriptsEndWithoutProcessorTime(t *testing.T) {
	t.Parallel()
	for language, sources := range map[string][]string{
		Lua: {`while true do end`, `while true do pcall(function() while true do end end) end`, `while true do mcp.calc.double{n = 1} end`,
			`while true do string.rep("x", 100):find(".-y") end`},
		JavaScript: {`while (true) {}`, `while (true) { try { while (true) {} } catch (e) {} }`, `while (true) await mcp.calc.double({n: 1})`},
	} {
		for _, source := range sources {
			t.Run(language+" "+source, func(t *testing.T) {
				t.Parallel()
				budget := &cpuBudget{left: 20 * time.Millisecond}
				r := newRunner(t, func(o *Options) { o.CPU, o.Limits.Time, o.Limits.Calls = budget, NoTimeLimit, 1<<40 })
				q := Request{Source: source, Language: language}
				for n := range 2 { // the second one does not start
					outcome, err := r.Run(ofAcme(t.Context()), q)
					var failure *Error
					if !errors.As(err, &failure) || failure.Kind != LimitError || failure.Message != "no processor time is left" || failure.Fault().Code != fault.Limit {
						t.Fatalf("run %d: %v", n, err)
					}
					if !strings.Contains(strings.Join(failure.Suggestions, "\n"), "tomorrow") {
						t.Errorf("%q", failure.Suggestions)
					}
					if (outcome.CPU > 0) != (n == 0) {
						t.Errorf("run %d used %s", n, outcome.CPU)
					}
				}
				if budget.used < 20*time.Millisecond {
					t.Errorf("ended after %s", budget.used)
				}
			})
		}
	}
}

// TestRunsThatAreNotCounted checks that scripts of nobody, and of organisations without a
// limit, charge nothing.
func TestRunsThatAreNotCounted(t *testing.T) {
	t.Parallel()
	budget := &cpuBudget{}
	r := newRunner(t, func(o *Options) { o.CPU = budget })
	for _, ctx := range []context.Context{t.Context(), principal.With(t.Context(), principal.Principal{ID: "key:b", Org: "beta"})} {
		if outcome, err := r.Run(ctx, Request{Source: "return 1"}); err != nil || outcome.CPU != 0 {
			t.Errorf("%+v, %v", outcome, err)
		}
	}
	if budget.charges != 0 {
		t.Errorf("%d charges", budget.charges)
	}
}

// TestWaitingIsNotCharged checks that a script uses nothing while it waits for tools, one or
// several in parallel.
func TestWaitingIsNotCharged(t *testing.T) {
	t.Parallel()
	for language, source := range map[string]string{
		Lua:               `return mcp.box.burn{}`,
		"lua parallel":    `return parallel.map({1, 2}, function(n) return mcp.box.burn{} end)`,
		JavaScript:        `return await mcp.box.burn({})`,
		"javascript both": `return await Promise.all([mcp.box.burn({}), mcp.box.burn({})])`,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(language, " ")
			budget := &cpuBudget{left: time.Hour}
			burn := func(context.Context, struct{}) (any, error) {
				budget.mu.Lock()
				defer budget.mu.Unlock()
				for began := time.Now(); time.Since(began) < 200*time.Millisecond; { // the work of the tool
				}
				return nil, nil
			}
			r := newRunner(t, func(o *Options) {
				o.CPU, o.Limits.Time, o.Tools = budget, NoTimeLimit, toolbox{tool.Ref{Space: "box", Name: "burn"}: scripttest.HandlerFor(burn)}
			})
			if _, err := r.Run(ofAcme(t.Context()), Request{Source: "return 1", Language: name}); err != nil { // prepares the engine
				t.Fatal(err)
			}
			outcome, err := r.Run(ofAcme(t.Context()), Request{Source: source, Language: name})
			if err != nil {
				t.Fatal(err)
			}
			if outcome.CPU <= 0 || outcome.CPU >= 200*time.Millisecond {
				t.Errorf("the script used %s", outcome.CPU)
			}
		})
	}
}

// BenchmarkMeasuredRun compares runs whose processor time is counted with others, in turn,
// by the processor time of each.
func BenchmarkMeasuredRun(b *testing.B) {
	for name, source := range map[string]string{
		"empty": "return 1",
		"short": "local sum = 0 for i = 1, 2000 do sum = sum + i % 7 end return {sum = sum}",
		"tool":  "local r = mcp.calc.double{n = 2} return {twice = r}",
		"long":  "local t = {} for i = 1, 100000 do t[i % 100] = i end return #t",
	} {
		b.Run(name, func(b *testing.B) {
			r := newRunner(b, func(o *Options) { o.CPU = &cpuBudget{left: 1 << 60} })
			var took [2]time.Duration
			for n := 0; b.Loop(); n++ {
				for _, i := range [2]int{n % 2, 1 - n%2} {
					ctx := principal.With(b.Context(), principal.Principal{ID: "key:a", Org: [2]string{"beta", "acme"}[i]})
					var m cputime.Meter
					m.Start()
					for range 10 {
						if _, err := r.Run(ctx, Request{Source: source}); err != nil {
							b.Fatal(err)
						}
					}
					took[i] += m.Stop()
				}
			}
			b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
		})
	}
}
