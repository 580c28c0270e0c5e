package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestFinishEnds checks how long an attempt goes on that the other side does not answer.
func TestFinishEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		if err := Finish(ctx, tryTime, never); err == nil || time.Since(began) != tryTime {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		time.AfterFunc(time.Second, stop)
		began = time.Now()
		if err := Finish(ctx, tryTime, never); err == nil || time.Since(began) != time.Second+stopTime {
			t.Errorf("stopped: %v after %s", err, time.Since(began))
		}
	})
}
