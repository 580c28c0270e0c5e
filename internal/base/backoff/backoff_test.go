package backoff

import (
	"math"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tests := []struct {
		name    string
		policy  Policy
		attempt int
		want    time.Duration
	}{
		{"first", Policy{}, 1, 100 * ms},
		{"second doubles", Policy{}, 2, 200 * ms},
		{"fifth", Policy{}, 5, 1600 * ms},
		{"sixth reaches the limit", Policy{}, 6, 3 * time.Second},
		{"stays at the limit", Policy{}, 7, 3 * time.Second},
		{"saturates", Policy{}, math.MaxInt, 3 * time.Second},
		{"zero counts as one", Policy{}, 0, 100 * ms},
		{"negative counts as one", Policy{}, math.MinInt, 100 * ms},
		{"own first", Policy{First: 5 * ms}, 3, 20 * ms},
		{"own bound", Policy{Max: 250 * ms}, 3, 250 * ms},
		{"first above the default limit", Policy{First: time.Minute}, 4, time.Minute},
		{"first above its own limit", Policy{First: time.Minute, Max: time.Second}, 1, time.Second},
		{"longest duration does not overflow", Policy{First: 1, Max: math.MaxInt64}, 1000, math.MaxInt64},
		{"negative fields mean defaults", Policy{First: -1, Max: -1, Jitter: -1}, 1, 100 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.policy.Delay(tt.attempt); got != tt.want {
				t.Errorf("Delay(%d) = %v, want %v", tt.attempt, got, tt.want)
			}
		})
	}
}

func TestJitterSpread(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		jitter, draw float64
		want         time.Duration
	}{
		{"no jitter ignores chance", 0, 0.9, time.Second},
		{"chance 0 keeps the delay", 0.5, 0, time.Second},
		{"half of half", 0.5, 0.5, 750 * time.Millisecond},
		{"jitter above one counts as one", 7, 0.5, 500 * time.Millisecond},
		{"never zero", 1, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Policy{Jitter: tt.jitter}.spread(time.Second, func() float64 { return tt.draw })
			if got != tt.want {
				t.Errorf("spread = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestJitterStaysInBounds(t *testing.T) {
	t.Parallel()
	p := Policy{First: time.Second, Max: time.Second, Jitter: 0.25}
	for range 1000 {
		if d := p.Delay(3); d < 750*time.Millisecond || d > time.Second {
			t.Fatalf("Delay = %v, want within [750ms, 1s]", d)
		}
	}
}
