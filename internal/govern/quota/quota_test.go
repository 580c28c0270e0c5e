package quota_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/quota"
)

func caller(ctx context.Context, concurrent int) context.Context {
	return principal.With(ctx, principal.Principal{ID: "key:ann", Name: "ann", Limits: principal.Limits{Concurrent: concurrent, Budget: 2}})
}

func call(space string) *tool.Invocation {
	return &tool.Invocation{Call: tool.Call{Ref: tool.Ref{Space: space, Name: "x"}}}
}

func TestCallsOfAPrincipalWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(func(context.Context, principal.Principal) error { return nil }, nil)
		step, ctx := q.LimitCalls(), caller(t.Context(), 1)
		first, second := call("a"), call("b")
		if _, err := step.Before(ctx, first); err != nil {
			t.Fatal(err)
		}
		entered := make(chan error)
		go func() {
			_, err := step.Before(ctx, second)
			entered <- err
		}()
		synctest.Wait()
		if n := q.Waiting(principal.Of(ctx)); n != 1 {
			t.Errorf("%d calls wait, want 1", n)
		}
		if _, err := step.Before(ctx, call("")); err != nil {
			t.Errorf("a call of our own tool: %v", err)
		}
		step.After(ctx, first)
		if err := <-entered; err != nil {
			t.Error(err)
		}
		step.After(ctx, second)
		if _, err := step.Before(principal.With(ctx, principal.Local()), call("a")); err != nil {
			t.Errorf("a principal without limits: %v", err)
		}
	})
}

func TestCallPastTheBudgetGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	left := 1
	q := quota.New(func(_ context.Context, who principal.Principal) error {
		if left--; left < 0 {
			return fault.New(fault.Limit, "%s has no budget left", who.Name)
		}
		return nil
	}, nil)
	step, ctx := q.LimitCalls(), caller(t.Context(), 1)
	first := call("a")
	if _, err := step.Before(ctx, first); err != nil {
		t.Fatal(err)
	}
	step.After(ctx, first)
	for range 2 { // the second one would wait for ever if the first kept its place
		refused := call("a")
		if _, err := step.Before(ctx, refused); fault.CodeOf(err) != fault.Limit {
			t.Errorf("past the budget: %v", err)
		}
	}
}
