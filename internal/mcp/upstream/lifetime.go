package upstream

import (
	"context"
	"sync"
)

// lifetime is a context that ends with its owner, and the goroutines that run for
// the owner.
type lifetime struct {
	ctx context.Context
	end context.CancelCauseFunc

	mu   sync.Mutex
	over bool
	wg   sync.WaitGroup
}

func newLifetime() *lifetime {
	l := &lifetime{}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	return l
}

// run calls f in a goroutine that wait waits for. After wait it does nothing and
// returns false.
func (l *lifetime) run(f func(ctx context.Context)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.wg.Go(func() { f(l.ctx) })
	return true
}

// bind returns a context that ends with ctx or with the lifetime. The caller calls
// release.
func (l *lifetime) bind(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// wait waits for all goroutines. No new ones start after it.
func (l *lifetime) wait() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.wg.Wait()
}

// orCause is ctx's cause if it has ended, and err otherwise.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
