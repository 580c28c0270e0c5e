package clocktest

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

// Settled is m for goleak.VerifyTestMain, which looks for less than half a second:
// goroutines that are about to end when the tests have passed may get to that later.
func Settled(m *testing.M, options ...goleak.Option) goleak.TestingM {
	return settled{m, func() error { return goleak.Find(options...) }}
}

type settled struct {
	m    goleak.TestingM
	left func() error // who of those that the tests began is still there
}

// Run runs the tests, and waits for what they began.
func (s settled) Run() int {
	code := s.m.Run()
	if code == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		Poll(ctx, func() bool { return s.left() == nil })
	}
	return code
}
