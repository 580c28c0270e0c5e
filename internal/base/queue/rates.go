package queue

import (
	"sync"
	"time"
)

// RateLimiter is a token bucket per name: each name may start so many times a minute,
// and as many at once if it did nothing before.
type RateLimiter struct {
	mu     sync.Mutex
	levels map[string]level
}

// level is the content of a bucket at a time.
type level struct {
	left float64
	at   time.Time
}

// maxNames is the number of names after which full buckets are removed.
const maxNames = 10_000

// Allow takes a token. If there is none, after is how long until the next one. A
// perMinute of zero or less means no limit.
func (r *RateLimiter) Allow(name string, perMinute int, now time.Time) (after time.Duration, ok bool) {
	if perMinute <= 0 {
		return 0, true
	}
	most := float64(perMinute)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.levels == nil {
		r.levels = map[string]level{}
	}
	l, known := r.levels[name]
	if !known {
		r.forget(now)
		l = level{most, now}
	}
	l.left = min(most, l.left+now.Sub(l.at).Minutes()*most)
	l.at = now
	if l.left < 1 {
		r.levels[name] = l
		return time.Duration((1 - l.left) / most * float64(time.Minute)), false
	}
	l.left--
	r.levels[name] = l
	return 0, true
}

// forget removes the names that did nothing for a minute; mu is held.
func (r *RateLimiter) forget(now time.Time) {
	if len(r.levels) < maxNames {
		return
	}
	for name, l := range r.levels {
		if now.Sub(l.at) >= time.Minute {
			delete(r.levels, name)
		}
	}
}
