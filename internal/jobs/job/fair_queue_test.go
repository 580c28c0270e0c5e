package job

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// A creator with many waiting jobs does not delay the jobs of others.
func TestTurnsAreFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newFairQueue(1)
		if err := turns.take(t.Context(), "first", 0); err != nil {
			t.Fatal(err)
		}
		var order []string
		ask := func(who string, priority int) {
			go func() {
				if err := turns.take(t.Context(), who, priority); err != nil {
					t.Error(err)
				}
				order = append(order, fmt.Sprint(who, priority)) // there is one place
				turns.give(who)
			}()
			synctest.Wait()
		}
		ask("amy", 0)
		ask("amy", 1)
		ask("amy", 2)
		ask("bob", 0)
		ask("bob", 0)
		turns.give("first")
		synctest.Wait()
		if want := []string{"amy2", "bob0", "amy1", "bob0", "amy0"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
		if len(turns.creators) != 0 || turns.free != 1 {
			t.Errorf("left behind: %v, %d free", turns.creators, turns.free)
		}
	})
}

func TestTurnsCanBeCancelled(t *testing.T) {
	t.Parallel()
	turns := newFairQueue(1)
	if err := turns.take(t.Context(), "amy", 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCancelled)
	if err := turns.take(ctx, "bob", 0); err != errCancelled { //nolint:errorlint // the cause itself
		t.Errorf("take = %v", err)
	}
	turns.give("amy")
	if len(turns.creators) != 0 || turns.free != 1 {
		t.Errorf("left behind: %v, %d free", turns.creators, turns.free)
	}
}
