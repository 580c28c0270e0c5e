package node

import (
	"testing"
	"time"
)

func TestRateMeterForgetsAfterAMinute(t *testing.T) {
	t.Parallel()
	var m RateMeter
	start := time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		total uint64
		want  uint64
	}{{0, 100, 0}, {30 * time.Second, 160, 60}, {61 * time.Second, 200, 100}, {91 * time.Second, 210, 50}, {92 * time.Second, 5, 0}} {
		if got := m.LastMinute(start.Add(c.after), c.total); got != c.want {
			t.Errorf("after %v: %d, want %d", c.after, got, c.want)
		}
	}
}
