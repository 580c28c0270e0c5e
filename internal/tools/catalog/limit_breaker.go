package catalog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// breaker is a circuit breaker: after a number of failures in a row it opens and
// refuses calls for a while. Then one call is tried, and its outcome closes or reopens
// the breaker. While nothing fails, a call reads two numbers and takes no lock.
type breaker struct {
	failures int // in a row, that open it
	rest     time.Duration

	failing    atomic.Bool   // a call failed since the last one that succeeded
	generation atomic.Uint64 // counts openings and closings; changed under mu

	mu     sync.Mutex
	failed int       // in a row, while it is closed
	until  time.Time // when the open breaker tries a call; zero while it is closed
	trying bool      // a call is being tried
}

func newBreaker(failures int, rest time.Duration) *breaker {
	return &breaker{failures: failures, rest: rest}
}

// resting tells whether calls are refused without trying any.
func (b *breaker) resting() bool {
	if !b.failing.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen()
}

// isOpen tells whether calls are refused; mu is held.
func (b *breaker) isOpen() bool { return !b.until.IsZero() && !time.Now().After(b.until) }

// retryAt is when a call is tried, or was.
func (b *breaker) retryAt() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// allow tells whether a call may be made. If so, done or cancelled must follow with the
// generation it returns.
func (b *breaker) allow() (generation uint64, ok bool) {
	generation = b.generation.Load() // before failing: what follows from that has another generation
	if !b.failing.Load() {
		return generation, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trying || b.isOpen() {
		return 0, false
	}
	b.trying = !b.until.IsZero()
	return b.generation.Load(), true
}

// done records how a call went. A call of an earlier generation says nothing about the
// present.
func (b *breaker) done(generation uint64, err error) {
	well := reached(err)
	if well && !b.failing.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case generation != b.generation.Load():
	case well:
		b.close()
	default:
		b.fail()
	}
}

// cancelled records a call that says nothing about the upstream. If it was the one
// being tried, another is.
func (b *breaker) cancelled(generation uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation == b.generation.Load() {
		b.trying = false
	}
}

// close closes the breaker; mu is held.
func (b *breaker) close() {
	if !b.until.IsZero() {
		b.generation.Add(1)
	}
	b.failed, b.until, b.trying = 0, time.Time{}, false
	b.failing.Store(false)
}

// fail counts a call that did not reach the upstream; mu is held.
func (b *breaker) fail() {
	b.failing.Store(true)
	b.failed++
	if b.until.IsZero() && b.failed < b.failures {
		return
	}
	b.generation.Add(1)
	b.failed, b.until, b.trying = 0, time.Now().Add(b.rest), false
}

// reached tells whether a call reached the upstream, whatever it answered. Only calls
// that did not count as failures.
func reached(err error) bool {
	if err == nil {
		return true
	}
	code := fault.CodeOf(err)
	return code != fault.Unavailable && code != fault.Timeout
}
