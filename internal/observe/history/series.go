package history

import (
	"math"
	"math/bits"
	"time"
)

// series counts calls in steps of time, for as long as there are buckets.
type series struct {
	step    time.Duration
	buckets []bucket
	last    int64 // Unix nanoseconds of the last call
}

// bucket counts one step.
type bucket struct {
	at            int64 // the step since 1970; another one means that the bucket is old
	calls, errors uint32
	took          durations
}

func newSeries(span, step time.Duration) *series {
	return &series{step: step, buckets: make([]bucket, int(span/step)+1)}
}

func (s *series) add(now time.Time, c Call) {
	s.last = now.UnixNano()
	at := s.last / int64(s.step)
	b := &s.buckets[int(at%int64(len(s.buckets)))]
	if b.at != at {
		*b = bucket{at: at}
	}
	b.calls++
	if c.Failed {
		b.errors++
	}
	b.took.add(c.Took)
}

// report returns the steps of the last span, the current one included, and their sum.
func (s *series) report(now time.Time, span time.Duration) (from time.Time, points []Point, total Point) {
	last := now.UnixNano() / int64(s.step)
	count := min(int64(span/s.step)+1, int64(len(s.buckets)))
	var sum bucket
	points = make([]Point, 0, count)
	for at := last - count + 1; at <= last; at++ {
		b := &s.buckets[int(at%int64(len(s.buckets)))]
		if b.at != at {
			points = append(points, Point{})
			continue
		}
		points = append(points, b.point())
		sum.merge(b)
	}
	return time.Unix(0, (last-count+1)*int64(s.step)).UTC(), points, sum.point()
}

func (b *bucket) merge(other *bucket) {
	b.calls += other.calls
	b.errors += other.errors
	for i, n := range other.took {
		b.took[i] += n
	}
}

func (b *bucket) point() Point {
	p := Point{Calls: b.calls, Errors: b.errors}
	if b.calls > 0 {
		p.P50, p.P95, p.P99 = b.took.quantile(.5), b.took.quantile(.95), b.took.quantile(.99)
	}
	return p
}

// durations counts durations, four buckets to each power of two of 64 µs: up to two
// minutes in 80 of them.
type durations [80]uint32

func (d *durations) add(took time.Duration) {
	units := uint64(max(took.Microseconds(), 0))/64 + 4
	high := bits.Len64(units) - 1
	d[min((high-2)*4+int(units>>(high-2)&3), len(d)-1)]++
}

// quantile is the duration in milliseconds that a share of the calls did not exceed: the
// middle of its bucket.
func (d *durations) quantile(share float64) float64 {
	total := uint64(0)
	for _, n := range d {
		total += uint64(n)
	}
	rank, seen := uint64(math.Ceil(share*float64(total))), uint64(0)
	for i, n := range d {
		if seen += uint64(n); n > 0 && seen >= rank {
			high, low := i/4, uint64(i%4)
			middle := float64((4+low)<<high) + float64(uint64(1)<<high)/2 - 4
			return middle * 64 / 1000
		}
	}
	return 0
}

// tally counts the calls of one tool in the last hour, in steps of five minutes.
type tally struct {
	last  int64
	slots [13]struct {
		at            int64
		calls, errors uint32
		bytes         uint64
	}
}

func (t *tally) add(now time.Time, c Call) {
	t.last = now.UnixNano()
	at := t.last / int64(dayStep)
	s := &t.slots[int(at%int64(len(t.slots)))]
	if s.at != at {
		s.at, s.calls, s.errors, s.bytes = at, 0, 0, 0
	}
	s.calls++
	s.bytes += uint64(max(c.Bytes, 0))
	if c.Failed {
		s.errors++
	}
}

func (t *tally) sum(now time.Time) (sum Tool) {
	last := now.UnixNano() / int64(dayStep)
	for _, s := range t.slots {
		if s.at > last-int64(len(t.slots)) && s.at <= last {
			sum.Calls, sum.Errors, sum.Bytes = sum.Calls+s.calls, sum.Errors+s.errors, sum.Bytes+s.bytes
		}
	}
	return sum
}
