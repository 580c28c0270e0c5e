package cputime_test

import (
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/cputime"
)

// TestWorkIsMeasuredAndWaitingIsNot checks that laps add up to the time of the work, of
// which a meter that is stopped counts nothing.
func TestWorkIsMeasuredAndWaitingIsNot(t *testing.T) {
	t.Parallel()
	var m cputime.Meter
	if m.Lap() != 0 || m.Stop() != 0 {
		t.Error("time before the start")
	}
	began := time.Now()
	m.Start()
	total := time.Duration(0)
	for total < 5*time.Millisecond { // ends only if work is counted
		total += m.Lap()
	}
	total += m.Stop()
	if passed := time.Since(began); total > passed+time.Millisecond {
		t.Errorf("%s of processor time in %s", total, passed)
	}
	if m.Lap() != 0 || m.Stop() != 0 {
		t.Error("a stopped meter counts")
	}
}

// TestMetersNest checks that the meter of a run inside another one measures only its own
// part, and leaves the outer one usable.
func TestMetersNest(t *testing.T) {
	t.Parallel()
	var outer, inner cputime.Meter
	outer.Start()
	first := outer.Stop()
	inner.Start()
	for inner.Lap() == 0 {
	}
	inner.Stop()
	outer.Start()
	for first == 0 {
		first = outer.Lap()
	}
	outer.Stop()
}

func BenchmarkStartStop(b *testing.B) {
	var m cputime.Meter
	for b.Loop() {
		m.Start()
		m.Stop()
	}
}

func BenchmarkLap(b *testing.B) {
	var m cputime.Meter
	m.Start()
	defer m.Stop()
	for b.Loop() {
		m.Lap()
	}
}
