package upstream

import (
	"context"
	"sync"
)

// lifetime is how long a thing lives, together with everything that runs for it.
// It holds a context because that is what a lifetime is; requests bring their own.
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

// run does f in a goroutine that wait waits for. After wait it does nothing and
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

// bind returns a ctx that ends with the lifetime too. The caller releases it.
func (l *lifetime) bind(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// wait lets nothing new run and waits for what does.
func (l *lifetime) wait() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.wg.Wait()
}

// orCause is why ctx ended, if it did, else err.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
