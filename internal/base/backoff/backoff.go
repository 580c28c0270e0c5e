// Package backoff computes how long to wait before a retry. A Policy is a pure
// function from the number of failures to a delay. It starts no timer and has no
// state: the caller counts the failures and waits.
package backoff

import (
	"math/rand/v2"
	"time"
)

// The defaults of a zero Policy: 100 ms, doubling to 3 s.
const (
	DefaultFirst = 100 * time.Millisecond
	DefaultMax   = 3 * time.Second
)

// Policy is how delays grow. The zero value waits 100 ms, then twice as long
// after each further failure, up to 3 s, without jitter.
type Policy struct {
	// First is the delay before the first retry; zero or less means DefaultFirst.
	First time.Duration
	// Max limits every delay, jitter included; zero or less means DefaultMax, or First
	// if that is longer.
	Max time.Duration
	// Jitter is the random share of each delay, from 0 to 1: the wait is between
	// (1-Jitter) and 1 times the delay, so it never exceeds Max. Zero, the default,
	// makes every delay exact.
	Jitter float64
}

// Delay returns how long to wait after the attempt-th consecutive failure, counting
// from one. Anything below one counts as one. The result is always within (0, Max].
func (p Policy) Delay(attempt int) time.Duration {
	return p.spread(p.exact(attempt), rand.Float64)
}

// exact returns the delay before jitter. It stops doubling at the limit, so it cannot
// overflow and is cheap for any attempt.
func (p Policy) exact(attempt int) time.Duration {
	first, bound := p.bounds()
	delay := first
	for n := 1; n < attempt && delay < bound; n++ {
		if delay > bound/2 {
			return bound
		}
		delay *= 2
	}
	return delay
}

func (p Policy) bounds() (first, bound time.Duration) {
	first, bound = p.First, p.Max
	if first <= 0 {
		first = DefaultFirst
	}
	if bound <= 0 {
		bound = max(DefaultMax, first)
	}
	return min(first, bound), bound
}

// spread subtracts up to Jitter's share from delay; chance returns a number in [0, 1).
func (p Policy) spread(delay time.Duration, chance func() float64) time.Duration {
	share := min(max(p.Jitter, 0), 1)
	if share == 0 {
		return delay
	}
	return max(1, delay-time.Duration(share*chance()*float64(delay)))
}
