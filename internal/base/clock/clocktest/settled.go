package clocktest

import (
	"context"

	"go.uber.org/goleak"
)

// Settled wraps m for goleak.VerifyTestMain, which waits for less than half a second.
// Goroutines that are about to end after the tests may take longer.
func Settled(m goleak.TestingM, options ...goleak.Option) goleak.TestingM {
	return settled{m, func() error { return goleak.Find(options...) }}
}

type settled struct {
	m    goleak.TestingM
	left func() error // reports the goroutines of the tests that still run
}

// Run runs the tests, and waits until their goroutines have ended.
func (s settled) Run() int {
	code := s.m.Run()
	if code == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		Poll(ctx, func() bool { return s.left() == nil })
	}
	return code
}
