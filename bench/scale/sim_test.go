package main

import (
	"math"
	"testing"
)

// queue simulates arrivals at a station whose servers take exponential times, and
// returns the mean time in the queue, the mean number of jobs there, and the use.
func queue(seed uint64, rate, mean float64, servers int, seconds float64) (wait, inside, use float64) {
	s := newSim(seed)
	st := s.station(servers)
	var total, area, moved float64
	var n, here int
	move := func(by int) {
		area += float64(here) * (s.now - moved)
		moved, here = s.now, here+by
	}
	s.arrivals(rate, func() {
		began, takes := s.now, s.exponential(mean)
		move(1)
		st.serve(takes, func() {
			move(-1)
			total += s.now - began - takes
			n++
		})
	})
	s.run(seconds)
	return total / float64(n), area / seconds, st.use()
}

// erlangC is the probability to wait with c servers and an offered load of a.
func erlangC(c int, a float64) float64 {
	sum, term := 0.0, 1.0
	for k := range c {
		if k > 0 {
			term *= a / float64(k)
		}
		sum += term
	}
	term *= a / float64(c)
	last := term * float64(c) / (float64(c) - a)
	return last / (sum + last)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s = %g, want %g within %g%%", what, got, want, tolerance*100)
	}
}

// The simulation agrees with the closed formulas for queues.
func TestStationsAreQueues(t *testing.T) {
	t.Parallel()
	const mean = 0.01
	for _, c := range []struct {
		servers int
		load    float64 // of all servers
	}{{1, 0.5}, {1, 0.8}, {2, 0.7}, {4, 0.9}, {16, 0.8}} {
		offered := c.load * float64(c.servers)
		rate := offered / mean
		wait, inside, use := queue(7, rate, mean, c.servers, 120_000/rate)
		near(t, "wait", wait, erlangC(c.servers, offered)*mean/(float64(c.servers)-offered), 0.1)
		near(t, "use", use, c.load, 0.02)
		near(t, "Little's law: inside", inside, rate*(wait+mean), 0.02)
	}
}

func TestSameSeedSameStory(t *testing.T) {
	t.Parallel()
	a, _, _ := queue(3, 50, 0.01, 1, 100)
	b, _, _ := queue(3, 50, 0.01, 1, 100)
	other, _, _ := queue(4, 50, 0.01, 1, 100)
	if a != b || a == other {
		t.Errorf("waits %g and %g with one seed, %g with another", a, b, other)
	}
}

// Commits share their wait for the disk: one that takes 10 ms carries a thousand
// a second, and groups are as large as what arrives meanwhile.
func TestGroupsShare(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	g := &group{sim: s, most: math.MaxInt}
	g.serve = func(_ []request, then func()) { s.after(0.01, then) }
	done := 0
	s.arrivals(1000, func() { g.join(request{then: func() { done++ }}) })
	s.run(100)
	near(t, "done", float64(done), 100_000, 0.02)
	near(t, "per group", float64(done)/float64(g.groups), 10, 0.05)
}
