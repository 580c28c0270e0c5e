// Package clocktest waits, in tests, for what nothing tells of: another process,
// another node, the kernel. Where there is a signal a test waits for that instead.
package clocktest

import (
	"context"
	"flag"
	"runtime"
	"testing"
	"time"
)

const (
	// Timeout is far longer than anything takes that happens at all.
	Timeout = time.Minute
	turn    = 5 * time.Millisecond
)

// SetParallel has six tests run beside each other unless -parallel says otherwise, where most
// of the time they wait, for other processes and for each other. TestMain calls it.
func SetParallel() {
	if err := flag.Set("test.parallel", "6"); err != nil { // before what the command line says
		panic(err)
	}
}

// Poll looks again and again until it holds; false says that ctx ended before.
func Poll(ctx context.Context, holds func() bool) bool {
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Await looks until it holds. A test that waits too long fails with what state
// says, or without one with what everybody is doing.
func Await(t testing.TB, holds func() bool, state ...func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	if Poll(ctx, holds) {
		return
	}
	t.Fatalf("it never came true: %s", append(state, stacks)[0]())
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}
