package queue

import (
	"sync"
	"time"
)

// RateLimiter count by name how often something is done. Each name may do it so many
// times a minute, saved up to as many at once.
type RateLimiter struct {
	mu     sync.Mutex
	levels map[string]level
}

// level is what a name had left, and when.
type level struct {
	left float64
	at   time.Time
}

// ratesKept is after how many names those are forgotten that have all of it left.
const ratesKept = 10_000

// Allow takes one of perMinute. When there is none, it tells after how long there
// will be. Zero or less is without a bound.
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

// forget drops names that did nothing for a minute; mu is held.
func (r *RateLimiter) forget(now time.Time) {
	if len(r.levels) < ratesKept {
		return
	}
	for name, l := range r.levels {
		if now.Sub(l.at) >= time.Minute {
			delete(r.levels, name)
		}
	}
}
