package terminal

import (
	"testing"
	"time"
)

// TestAttemptsAreLoadedWithoutEvents checks that the list of servers is outdated when the next
// attempt of one was due: the server publishes few events about one that stays disconnected.
func TestAttemptsAreLoadedWithoutEvents(t *testing.T) {
	t.Parallel()
	loaded := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		state   plain
		nextTry int64
		after   time.Duration
		want    bool
	}{
		{"reconnecting", 3000, 2999 * time.Millisecond, false},
		{"reconnecting", 3000, 3 * time.Second, true},
		{"reconnecting", 0, 999 * time.Millisecond, false},
		{"reconnecting", 0, time.Second, true},
		{"failed", 3000, 3 * time.Second, true},
		{"connected", 0, time.Hour, false},
		{"asleep", 0, time.Hour, false},
		{"removed", 0, time.Hour, false},
	} {
		b := &state{Upstreams: []upstream{{State: c.state, NextTryMS: c.nextTry, loadedAt: loaded}}}
		if got := b.hasTried(loaded.Add(c.after)); got != c.want {
			t.Errorf("%s with the next attempt in %d ms, after %v: %v", c.state, c.nextTry, c.after, got)
		}
	}
}
