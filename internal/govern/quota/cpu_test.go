package quota_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/quota"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// burnAll charges CPU time in small steps from several goroutines and nodes until none is
// left, and returns how much.
func burnAll(t *testing.T, step time.Duration, nodes ...*quota.Orgs) time.Duration {
	t.Helper()
	var used atomic.Int64
	var work sync.WaitGroup
	for i := range 2 * len(nodes) {
		work.Go(func() {
			for {
				err := nodes[i%len(nodes)].Charge(t.Context(), "acme", 0) // as a script does when it starts
				if err == nil {
					used.Add(int64(step))
					err = nodes[i%len(nodes)].Charge(t.Context(), "acme", step)
				}
				if err != nil {
					if fault.CodeOf(err) != fault.Limit {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	work.Wait()
	return time.Duration(used.Load())
}

func cpuLimits(seconds int64) quota.Limits { return quota.Limits{"acme": {quota.CPU: seconds}} }

// TestCPUOfAnOrganisation checks that one node allows the quota up to the last step of each
// script, also after a restart, with what the usage says.
func TestCPUOfAnOrganisation(t *testing.T) {
	t.Parallel()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	now := clock.NewVirtual(time.Date(2026, 11, 18, 18, 0, 0, 0, time.UTC))
	open := func() *quota.Orgs {
		o, err := quota.OpenOrgs(t.Context(), store, cpuLimits(10), now.Now)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := open()
	if !first.Counts("acme") || first.Counts("beta") || first.Charge(t.Context(), "beta", time.Hour) != nil {
		t.Error("what is counted")
	}
	for range 3000 {
		if err := first.Charge(t.Context(), "acme", 0); err != nil {
			t.Fatal(err)
		}
		if err := first.Charge(t.Context(), "acme", 1500*time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := first.Usage(t.Context(), "acme"); err != nil || math.Abs(u.CPUSeconds.Used-4.5) > 1e-6 || u.CPUSeconds.Limit != 10 {
		t.Errorf("%+v, %v", u, err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := open()
	used := burnAll(t, time.Millisecond, second)
	if used < 5500*time.Millisecond || used > 5500*time.Millisecond+2*time.Millisecond {
		t.Errorf("%s of the 5.5 s that are left", used)
	}
	err := second.Charge(t.Context(), "acme", 0)
	if err == nil || err.Error() != "the organisation acme may have 10 CPU seconds of scripts a day" {
		t.Error(err)
	}
	now.Advance(6 * time.Hour)
	if used := burnAll(t, 5*time.Millisecond, second); used < 10*time.Second || used > 10*time.Second+10*time.Millisecond {
		t.Errorf("%s on the next day", used)
	}
}

// TestCPUOnThreeNodes checks that three nodes together allow the quota within 1 %, also
// when two of them have nothing more to do.
func TestCPUOnThreeNodes(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	var nodes []*quota.Orgs
	for range 3 {
		o, err := quota.OpenOrgs(t.Context(), dbtest.OpenWith(t, url, db.Options{}), cpuLimits(60), func() time.Time { return time.Unix(1_800_000_000, 0) })
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, o)
	}
	used := time.Duration(0)
	for _, node := range nodes { // each takes a portion
		for range 2 {
			if err := node.Charge(t.Context(), "acme", time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		used += time.Millisecond // the first one only opened the day
	}
	used += burnAll(t, 5*time.Millisecond, nodes[0])
	if used < 59400*time.Millisecond || used > 60*time.Second+30*time.Millisecond {
		t.Errorf("one of three nodes: %s of 60 s", used)
	}
	used += burnAll(t, 5*time.Millisecond, nodes[1:]...) // what the others had taken
	if used < 59400*time.Millisecond || used > 60*time.Second+60*time.Millisecond {
		t.Errorf("%s of 60 s", used)
	}
}

// TestQuotasChangeWhileTheServerRuns checks that a new quota applies at once, with what was
// used before.
func TestQuotasChangeWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	limits := func(calls int64) quota.Limits { return quota.Limits{"acme": {quota.Calls: calls}} }
	o, err := quota.OpenOrgs(t.Context(), store, limits(0), func() time.Time { return time.Unix(1_800_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	for n, step := range []struct{ limit, attempts, allowed int64 }{{0, 50, 50}, {10, 8, 8}, {12, 9, 4}, {5, 3, 0}, {20, 9, 8}, {0, 9, 9}} {
		if err := o.Set(t.Context(), limits(step.limit)); err != nil {
			t.Fatal(err)
		}
		if allowed := spendAll(t, int(step.attempts), o); allowed != step.allowed {
			t.Errorf("step %d: %d of %d calls, want %d", n, allowed, step.attempts, step.allowed)
		}
	}
}

// TestCallsWithoutALoginDoNotCount checks that a call that waits for somebody's login is
// not counted, and one that the upstream refused is.
func TestCallsWithoutALoginDoNotCount(t *testing.T) {
	t.Parallel()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	o, err := quota.OpenOrgs(t.Context(), store, quota.Limits{"acme": {quota.Calls: 3}}, func() time.Time { return time.Unix(1_800_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	step := quota.New(func(context.Context, principal.Principal) error { return nil }, o).LimitCalls()
	ctx := principal.With(t.Context(), principal.Principal{ID: "key:one", Org: "acme"})
	login := fault.New(fault.NeedsAuth, "log in")
	used := 0.0
	for n, of := range []struct {
		err  error
		cost float64
	}{{tool.Unsent{Err: login}, 0}, {nil, 1}, {login, 1}, {tool.Unsent{Err: login}, 0}, {tool.Unsent{Err: fault.New(fault.Unavailable, "gone")}, 1}} {
		i := call("a")
		if _, err := step.Before(ctx, i); err != nil {
			t.Fatal(err)
		}
		i.Err = of.err
		step.After(ctx, i)
		used += of.cost
		if u, err := o.Usage(t.Context(), "acme"); err != nil || u.Calls.Used != used {
			t.Errorf("after call %d: %+v, want %v used; %v", n, u.Calls, used, err)
		}
	}
}
