package cancel

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vigil clock.Vigil
		var w Watch
		var called atomic.Int32
		f := func() { called.Add(1) }
		for name, test := range map[string]struct {
			ends, lasts time.Duration // the context, what is watched
			want        int32
		}{
			"over at once":            {time.Hour, 0, 0},
			"over after a while":      {time.Hour, time.Minute, 0},
			"ends when it is over":    {time.Minute, time.Second, 0},
			"ends within the moment":  {moment / 2, 2 * moment, 1},
			"ends later":              {time.Second, time.Minute, 1},
			"too short to be noticed": {moment / 4, moment / 2, 0},
		} {
			called.Store(0)
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(test.ends, cancel)
			w.Begin(ctx, &vigil, f)
			time.Sleep(test.lasts)
			synctest.Wait()
			if undisturbed := w.End(); undisturbed != (test.want == 0) {
				t.Errorf("%s: undisturbed %v", name, undisturbed)
			}
			cancel()
			timer.Stop()
			time.Sleep(time.Minute)
			synctest.Wait()
			if called.Load() != test.want {
				t.Errorf("%s: called %d times, want %d", name, called.Load(), test.want)
			}
		}
	})
}

func BenchmarkWatch(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		var vigil clock.Vigil
		var w Watch
		for b.Loop() {
			w.Begin(ctx, &vigil, func() {})
			w.End()
		}
	})
	b.Run("context's", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			context.AfterFunc(ctx, func() {})()
		}
	})
}
