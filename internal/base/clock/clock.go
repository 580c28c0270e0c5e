// Package clock has an interface to time. Code that waits takes a Clock: Real in the
// program, and a Virtual one where time must be controlled, as in tests and in the
// replay of a journal.
package clock

import (
	"context"
	"time"
)

// Clock returns the time and waits for it to pass. It is safe for concurrent use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// Sleep waits until d has passed or ctx is done, and returns ctx's cause in
	// the latter case. It returns at once when d is zero or less, unless ctx is
	// done already.
	Sleep(ctx context.Context, d time.Duration) error
	// AfterFunc calls f in a goroutine of its own once d has passed, unless stop
	// is called first; stop reports whether it prevented the call.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Real returns the machine's clock.
func Real() Clock { return machine{} }

type machine struct{}

func (machine) Now() time.Time { return time.Now() }

func (machine) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (machine) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
