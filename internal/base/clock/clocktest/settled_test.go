package clocktest

import (
	"errors"
	"testing"
)

// ended is a test run with that exit code.
type ended int

func (e ended) Run() int { return int(e) }

func TestSettledWaitsForLateGoroutines(t *testing.T) {
	t.Parallel()
	for code, want := range map[ended]int{0: 3, 1: 0} {
		looks := 0
		left := func() error {
			if looks++; looks < 3 {
				return errors.New("a goroutine still runs")
			}
			return nil
		}
		if got := (settled{code, left}).Run(); got != int(code) || looks != want {
			t.Errorf("tests that ended with %d: %d after %d checks, want %d", code, got, looks, want)
		}
	}
}
