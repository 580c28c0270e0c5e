package zmtp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueueBounds(t *testing.T) {
	t.Parallel()
	q := newQueue(3, 100)
	fits := Message{make([]byte, 40-frameCost)}
	for i, want := range []error{nil, nil, errQueueFull} { // 40, 80, 120 bytes
		if err := q.offer(fits); !errors.Is(err, want) {
			t.Errorf("offer %d: %v, want %v", i, err, want)
		}
	}
	tiny := Message{nil}
	if err := q.offer(tiny); err != nil {
		t.Errorf("a tiny one fits: %v", err)
	}
	if err := q.offer(tiny); !errors.Is(err, errQueueFull) {
		t.Errorf("a fourth message: %v", err)
	}
	if left := q.close(); len(left) != 3 {
		t.Errorf("%d left", len(left))
	}
	if err := q.offer(tiny); !errors.Is(err, errQueueClosed) {
		t.Errorf("offer to a closed queue: %v", err)
	}
	alone := newQueue(3, 100)
	if err := alone.offer(Message{make([]byte, 1000)}); err != nil {
		t.Errorf("a large message alone: %v", err)
	}
}

// TestQueueWaiters checks that all waiters get free space, one after the other.
func TestQueueWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2, 50)
		var wg sync.WaitGroup
		const waiters = 20
		for i := range waiters {
			wg.Go(func() {
				if err := q.put(t.Context(), Message{make([]byte, i)}); err != nil {
					t.Errorf("put: %v", err)
				}
			})
		}
		synctest.Wait()
		for range waiters {
			m := <-q.items
			q.release(m.size())
		}
		wg.Wait()
		if err := q.waitEmpty(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestQueueEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 50)
		if err := q.put(t.Context(), Message{nil}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for name, wait := range map[string]func() error{
			"put":     func() error { return q.put(ctx, Message{nil}) },
			"drained": func() error { return q.waitEmpty(ctx) },
		} {
			if err := wait(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s after its deadline: %v", name, err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := q.put(t.Context(), Message{nil}); !errors.Is(err, errQueueClosed) {
				t.Errorf("put to a closing queue: %v", err)
			}
		})
		wg.Go(func() {
			if err := q.waitEmpty(t.Context()); err != nil {
				t.Errorf("wait for a closed queue: %v", err)
			}
		})
		synctest.Wait()
		q.close()
		wg.Wait()
	})
}

func TestTopics(t *testing.T) {
	t.Parallel()
	few, many := newTopics(), newTopics()
	for i := range 1000 {
		_, _ = many.add(fmt.Sprintf("zz%d", i), 10_000)
	}
	for _, set := range []*topics{few, many} {
		if set.match([]byte("abc")) {
			t.Error("a set without it matches")
		}
		for _, topic := range []string{"ab", "ab", "x"} {
			if _, err := set.add(topic, 10_000); err != nil {
				t.Fatal(err)
			}
		}
		for frame, want := range map[string]bool{"abc": true, "ab": true, "a": false, "": false, "b": false, "xyz": true} {
			if set.match([]byte(frame)) != want {
				t.Errorf("match(%q) is not %v", frame, want)
			}
		}
		if !set.remove("ab") || set.remove("ab") || set.match([]byte("abc")) {
			t.Error("ab was not removed exactly once")
		}
		_, _ = set.add("", 10_000)
		if !set.match(nil) || !set.match([]byte("anything")) {
			t.Error("the empty topic does not match all")
		}
	}
}
