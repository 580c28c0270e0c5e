package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Virtual is a clock that moves only when Advance is called.
type Virtual struct {
	mu      sync.Mutex
	now     time.Time
	next    uint64 // number of the next alarm: alarms at the same time fire in order of creation
	alarms  alarms
	arrived chan struct{} // closed and replaced whenever an alarm is set
}

// NewVirtual returns a clock set to start.
func NewVirtual(start time.Time) *Virtual {
	return &Virtual{now: start, arrived: make(chan struct{})}
}

// Now returns the clock's time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Advance moves the clock by d and fires the alarms up to then in the order of their
// times. While an alarm fires, the clock shows exactly its time. The callers that are
// woken run concurrently; an alarm that they set for a time within d may or may not
// fire in the same Advance. A negative d is ignored.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	target := v.now.Add(max(d, 0))
	for len(v.alarms) > 0 && !v.alarms[0].at.After(target) {
		a := heap.Pop(&v.alarms).(*alarm)
		v.now = a.at
		v.mu.Unlock()
		a.ring()
		v.mu.Lock()
	}
	if v.now.Before(target) {
		v.now = target
	}
	v.mu.Unlock()
}

// Sleep waits until Advance has moved the clock by d.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	rung := make(chan struct{})
	stop := v.set(d, func() { close(rung) })
	select {
	case <-rung:
		return nil
	case <-ctx.Done():
		stop()
		return context.Cause(ctx)
	}
}

// AfterFunc calls f in a goroutine of its own when the clock has moved by d, or at
// once if d is zero or less.
func (v *Virtual) AfterFunc(d time.Duration, f func()) func() bool {
	if d <= 0 {
		go f()
		return func() bool { return false }
	}
	return v.set(d, func() { go f() })
}

// AwaitSleepers waits until at least n sleepers and functions are pending, so that a
// test can call Advance afterwards.
func (v *Virtual) AwaitSleepers(ctx context.Context, n int) error {
	for {
		v.mu.Lock()
		waiting, arrived := len(v.alarms), v.arrived
		v.mu.Unlock()
		if waiting >= n {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (v *Virtual) set(d time.Duration, ring func()) (stop func() bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := &alarm{at: v.now.Add(d), order: v.next, ring: ring}
	v.next++
	heap.Push(&v.alarms, a)
	close(v.arrived)
	v.arrived = make(chan struct{})
	return func() bool { return v.unset(a) }
}

func (v *Virtual) unset(a *alarm) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if a.place < 0 {
		return false
	}
	heap.Remove(&v.alarms, a.place)
	return true
}

// alarm is a call due at a time. place is its index in the heap, or -1 after it was
// removed.
type alarm struct {
	at    time.Time
	order uint64
	place int
	ring  func()
}

// alarms is a heap, earliest first.
type alarms []*alarm

func (q alarms) Len() int { return len(q) }

func (q alarms) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].order < q[j].order
	}
	return q[i].at.Before(q[j].at)
}

func (q alarms) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *alarms) Push(x any) {
	a := x.(*alarm)
	a.place = len(*q)
	*q = append(*q, a)
}

func (q *alarms) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	last.place = -1
	return last
}

var _ Clock = (*Virtual)(nil)
