package catalog

import (
	"context"
	"math"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"
)

// Stats counts the calls of one namespace.
type Stats struct {
	Namespace string        `json:"namespace"`
	Calls     uint64        `json:"calls"`     // finished
	Errors    uint64        `json:"errors"`    // calls that failed or answered with an error
	InFlight  int           `json:"in_flight"` // running and waiting
	Waiting   int           `json:"waiting"`   // for the namespace's limit
	LastTool  string        `json:"last_tool,omitempty"`
	LastCall  time.Time     `json:"last_call,omitzero"`
	P50       time.Duration `json:"p50"` // durations are exact to an eighth
	P90       time.Duration `json:"p90"`
	P99       time.Duration `json:"p99"`
	Max       time.Duration `json:"max"`
	Open      bool          `json:"open"`              // the circuit breaker refuses calls
	RetryAt   time.Time     `json:"retry_at,omitzero"` // when a call is tried, if Open
}

// Stats returns the statistics of a namespace, "" for our own tools; ok is false when
// there is none of that name.
func (c *Catalog) Stats(ctx context.Context, namespace string) (stats Stats, ok bool) {
	v := c.view.Load()
	if v.namespaces[namespace] == nil {
		v = c.refresh(ctx)
	}
	s := v.namespaces[namespace]
	if s == nil {
		return Stats{}, false
	}
	return s.state.stats(), true
}

// counters count one namespace's calls.
type counters struct {
	calls    atomic.Uint64
	errors   atomic.Uint64
	inFlight atomic.Int64
	lastTool atomic.Pointer[string]
	lastCall atomic.Int64 // in Unix nanoseconds
	took     histogram
}

func (c *counters) begin(tool string, at time.Time) {
	c.inFlight.Add(1)
	c.lastCall.Store(at.UnixNano())
	if last := c.lastTool.Load(); last == nil || *last != tool {
		name := strings.Clone(tool) // does not keep the whole message in memory
		c.lastTool.Store(&name)
	}
}

func (c *counters) end(took time.Duration, failed bool) {
	c.inFlight.Add(-1)
	c.calls.Add(1)
	if failed {
		c.errors.Add(1)
	}
	c.took.add(took)
}

// drop forgets a call that has begun and does not count.
func (c *counters) drop() { c.inFlight.Add(-1) }

// histogram counts durations in buckets, four to each power of two of
// microseconds: 1 µs to 2 hours in 132 of them.
type histogram struct {
	buckets [132]atomic.Uint64
	longest atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(d)].Add(1)
	for {
		longest := h.longest.Load()
		if int64(d) <= longest || h.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// bucketOf takes the position of the highest bit and the two bits after it.
func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0)) + 4 // the first buckets are one µs wide
	high := bits.Len64(us) - 1
	return min((high-2)*4+int(us>>(high-2)&3), len(histogram{}.buckets)-1)
}

// bucketTop is the longest duration a bucket counts.
func bucketTop(bucket int) time.Duration {
	high, low := bucket/4, uint64(bucket%4)
	return time.Duration((4+low+1)<<high-4) * time.Microsecond
}

// quantiles are the durations that the given shares of calls did not exceed.
func (h *histogram) quantiles(shares ...float64) []time.Duration {
	var counts [len(histogram{}.buckets)]uint64
	total := uint64(0)
	for i := range counts {
		counts[i] = h.buckets[i].Load()
		total += counts[i]
	}
	found := make([]time.Duration, len(shares))
	for i, share := range shares {
		rank, seen := uint64(math.Ceil(share*float64(total))), uint64(0)
		for b, n := range counts {
			if seen += n; n > 0 && seen >= rank {
				found[i] = min(bucketTop(b), time.Duration(h.longest.Load()))
				break
			}
		}
	}
	return found
}
