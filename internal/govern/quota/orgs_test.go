package quota_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/quota"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// spendAll makes calls from several goroutines and nodes, and returns how many were
// allowed.
func spendAll(t *testing.T, calls int, nodes ...*quota.Orgs) int64 {
	t.Helper()
	var allowed atomic.Int64
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for n := i; n < calls; n += 8 {
				switch err := nodes[n%len(nodes)].Spend(t.Context(), "acme"); {
				case err == nil:
					allowed.Add(1)
				case fault.CodeOf(err) != fault.Limit:
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	return allowed.Load()
}

// TestQuotaOfAnOrganisation checks that one node allows exactly the quota, also after a
// restart, and all of it again on the next day.
func TestQuotaOfAnOrganisation(t *testing.T) {
	t.Parallel()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	now := clock.NewVirtual(time.Date(2026, 11, 18, 18, 0, 0, 0, time.UTC))
	open := func() *quota.Orgs {
		o, err := quota.OpenOrgs(t.Context(), store, map[string]map[string]int64{"acme": {quota.Calls: 1500}}, now.Now)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := open()
	if allowed := spendAll(t, 1000, first); allowed != 1000 {
		t.Errorf("%d of 1000 calls", allowed)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := open()
	if allowed := spendAll(t, 700, second); allowed != 500 {
		t.Errorf("%d of 500 calls that are left", allowed)
	}
	err := second.Spend(t.Context(), "acme")
	if err == nil || err.Error() != "the organisation acme may have 1500 tool calls a day" || !strings.Contains(fault.HintOf(err), "try again in 6h0m0s") {
		t.Errorf("%v, %s", err, fault.HintOf(err))
	}
	if err := second.Spend(t.Context(), "beta"); err != nil {
		t.Errorf("without a quota: %v", err)
	}
	if u, err := second.Usage(t.Context(), "acme"); err != nil || u.Calls != (quota.Used{Used: 1500, Limit: 1500}) || !u.Renews.Equal(time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", u, err)
	}
	now.Advance(6 * time.Hour)
	if allowed := spendAll(t, 1600, second); allowed != 1500 {
		t.Errorf("%d calls on the next day", allowed)
	}
}

// TestQuotaOnThreeNodes checks that three nodes together allow no more than the quota, and
// at least 99 % of it, whichever of them the calls come to.
func TestQuotaOnThreeNodes(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	var nodes []*quota.Orgs
	for range 3 {
		o, err := quota.OpenOrgs(t.Context(), dbtest.OpenWith(t, url, db.Options{}), map[string]map[string]int64{"acme": {quota.Calls: 10_000}}, func() time.Time { return time.Unix(1_800_000_000, 0) })
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, o)
	}
	allowed := spendAll(t, 3000, nodes...) + spendAll(t, 7200, nodes[0]) // two nodes have nothing more to do
	if allowed > 10_000 || allowed < 9_900 {
		t.Errorf("%d of 10000 calls", allowed)
	}
}

// TestCallsOfOrganisations checks that calls of members are counted, whoever makes them,
// and nobody else's.
func TestCallsOfOrganisations(t *testing.T) {
	t.Parallel()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	orgs, err := quota.OpenOrgs(t.Context(), store, map[string]map[string]int64{"acme": {quota.Calls: 2}}, func() time.Time { return time.Unix(1_800_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	step := quota.New(func(context.Context, principal.Principal) error { return nil }, orgs).LimitCalls()
	attempt := func(who principal.Principal) error {
		i := call("a")
		_, err := step.Before(principal.With(t.Context(), who), i)
		if err == nil {
			step.After(t.Context(), i)
		}
		return err
	}
	limited := principal.Principal{ID: "key:limited", Org: "acme", Limits: principal.Limits{Concurrent: 1}}
	for n, want := range []struct {
		who     principal.Principal
		refused bool
	}{
		{principal.Principal{ID: "key:one", Org: "acme"}, false}, {limited, false},
		{principal.Principal{ID: "key:one", Org: "acme"}, true}, {limited, true}, {limited, true},
		{principal.Principal{ID: "key:chats", Person: "acme/ada"}, true},
		{principal.Principal{ID: "key:other", Org: "beta"}, false}, {principal.Principal{ID: "key:chats", Person: "beta/bob"}, false}, {principal.Local(), false},
	} {
		if err := attempt(want.who); (fault.CodeOf(err) == fault.Limit) != want.refused {
			t.Errorf("call %d, %s: %v", n, want.who.ID, err)
		}
	}
}

// TestRefusedCallsWriteNothing checks that a node asks at most once a second whether
// another one has given back a part of a quota.
func TestRefusedCallsWriteNothing(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	now := clock.NewVirtual(time.Date(2026, 11, 18, 18, 0, 0, 0, time.UTC))
	var nodes []*quota.Orgs
	for range 2 {
		o, err := quota.OpenOrgs(t.Context(), dbtest.OpenWith(t, url, db.Options{}), map[string]map[string]int64{"acme": {quota.Calls: 1000}}, now.Now)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, o)
	}
	spendAll(t, 1, nodes[1]) // of a portion of three
	if allowed := spendAll(t, 1100, nodes[0]); allowed != 997 {
		t.Errorf("%d calls", allowed)
	}
	if err := nodes[1].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if allowed := spendAll(t, 100, nodes[0]); allowed != 0 {
		t.Errorf("%d calls: the database was asked again at once", allowed)
	}
	now.Advance(time.Second)
	if allowed := spendAll(t, 100, nodes[0]); allowed != 2 {
		t.Errorf("%d calls of the two that were given back", allowed)
	}
}

// TestJobsOfOrganisations checks that two nodes together start exactly the jobs of a quota,
// and that one that was not stored is not counted.
func TestJobsOfOrganisations(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	ctx := principal.With(t.Context(), principal.Principal{ID: "key:one", Org: "acme"})
	var allowed atomic.Int64
	var work sync.WaitGroup
	var last *quota.Orgs
	for range 2 {
		store := dbtest.OpenWith(t, url, db.Options{})
		o, err := quota.OpenOrgs(ctx, store, map[string]map[string]int64{"acme": {quota.Jobs: 15}}, func() time.Time { return time.Unix(1_800_000_000, 0) })
		if err != nil {
			t.Fatal(err)
		}
		last = o
		notStored := errors.New("not stored")
		work.Go(func() {
			for n := range 20 {
				err := store.Write(ctx, func(tx *db.Tx) error {
					if err := o.SpendJob(ctx, tx); err != nil || n%2 == 0 {
						return cmp.Or(err, notStored)
					}
					return nil
				})
				switch {
				case err == nil:
					allowed.Add(1)
				case !errors.Is(err, notStored) && fault.CodeOf(err) != fault.Limit:
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if u, err := last.Usage(ctx, "acme"); err != nil || allowed.Load() != 15 || u.Jobs != (quota.Used{Used: 15, Limit: 15}) {
		t.Errorf("%d of 15 jobs, %+v, %v", allowed.Load(), u, err)
	}
}
