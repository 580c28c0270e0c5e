package catalog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// breaker refuses calls while there is no use in trying: after so many failures in a
// row it is open and lets them rest. Then one is tried, and how that goes decides for
// all. While all goes well a call asks it for two numbers and takes no lock.
type breaker struct {
	failures int // in a row, that open it
	rest     time.Duration

	failing    atomic.Bool   // something failed since the last call that got through
	generation atomic.Uint64 // counts openings and closings; changed under mu

	mu     sync.Mutex
	failed int       // in a row, while it is closed
	until  time.Time // the end of the rest; zero while it is closed
	trying bool      // one is being tried after the rest
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

// isOpen tells whether it rests; mu is held.
func (b *breaker) isOpen() bool { return !b.until.IsZero() && !time.Now().After(b.until) }

// retryAt is when one is tried, or has been.
func (b *breaker) retryAt() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// allow tells whether a call may be made. If so, done or calledOff must be told of its
// end, with the era it was made in.
func (b *breaker) allow() (era uint64, ok bool) {
	era = b.generation.Load() // before the look at trouble: what comes of that is another era
	if !b.failing.Load() {
		return era, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trying || b.isOpen() {
		return 0, false
	}
	b.trying = !b.until.IsZero()
	return b.generation.Load(), true
}

// done takes note of how a call went. One that began before it was opened or closed
// tells nothing about what is now.
func (b *breaker) done(era uint64, err error) {
	well := reached(err)
	if well && !b.failing.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case era != b.generation.Load():
	case well:
		b.close()
	default:
		b.fail()
	}
}

// cancelled takes note of a call that tells nothing about the other side: if it was
// the one that was tried, another is.
func (b *breaker) cancelled(era uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if era == b.generation.Load() {
		b.trying = false
	}
}

// close lets all calls through; mu is held.
func (b *breaker) close() {
	if !b.until.IsZero() {
		b.generation.Add(1)
	}
	b.failed, b.until, b.trying = 0, time.Time{}, false
	b.failing.Store(false)
}

// fail counts a call that did not get through; mu is held.
func (b *breaker) fail() {
	b.failing.Store(true)
	b.failed++
	if b.until.IsZero() && b.failed < b.failures {
		return
	}
	b.generation.Add(1)
	b.failed, b.until, b.trying = 0, time.Now().Add(b.rest), false
}

// reached tells whether a call got through to the other side, whatever was
// answered there. Only what did not counts against the connection.
func reached(err error) bool {
	if err == nil {
		return true
	}
	code := fault.CodeOf(err)
	return code != fault.Unavailable && code != fault.Timeout
}
