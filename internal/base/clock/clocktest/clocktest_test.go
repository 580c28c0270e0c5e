package clocktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

func TestPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		clocktest.Await(t, func() bool { looks++; return time.Since(began) > time.Second })
		if looks < 100 {
			t.Errorf("%d polls in a second", looks)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if clocktest.Poll(ctx, func() bool { return false }) || ctx.Err() == nil {
			t.Error("a condition that never holds was reported as true")
		}
	})
}
