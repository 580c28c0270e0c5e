// Package clocktest helps tests wait for events without a notification: in another
// process, on another node, in the kernel. Where there is a signal, a test waits for
// that instead.
package clocktest

import (
	"context"
	"flag"
	"runtime"
	"testing"
	"time"
)

const (
	// Timeout is far longer than any successful wait takes, also beside other work, and far
	// shorter than what a package's tests may take.
	Timeout = 2 * time.Minute * slower
	turn    = 5 * time.Millisecond
)

// SetParallel runs six tests in parallel unless -parallel is set, for packages whose
// tests mostly wait for other processes and for each other. TestMain calls it.
func SetParallel() {
	if err := flag.Set("test.parallel", "6"); err != nil { // the command line is parsed later and overrides it
		panic(err)
	}
}

// Poll calls holds repeatedly until it returns true. It returns false if ctx ended
// first.
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

// Await polls until the condition holds, also in a cleanup, when the test's context has
// ended. On a timeout the test fails with the results of state and the stacks of all
// goroutines.
func Await(t testing.TB, holds func() bool, state ...func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Timeout)
	defer cancel()
	if Poll(ctx, holds) {
		return
	}
	text := "the condition did not become true"
	for _, of := range append(state, stacks) {
		text += "\n" + of()
	}
	t.Fatal(text)
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}
