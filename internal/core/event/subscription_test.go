package event

import (
	"testing"
	"testing/synctest"
)

type tick struct{}

func (tick) EventType() string { return "test.tick" }

// TestOneTokenWakesAllItShould checks two events that arrive before the first reader
// wakes. They leave one token for two readers, and the reader that takes it wakes the
// next.
func TestOneTokenWakesAllItShould(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sub := New(BusOptions{}).Subscribe(Options{})
		defer sub.Close()
		read := make(chan uint64, 2)
		for range 2 {
			go func() {
				e, _ := sub.Next(t.Context())
				read <- e.Seq
			}()
		}
		synctest.Wait()
		sub.mu.Lock() // no reader can read before both are queued
		for seq := range uint64(2) {
			sub.queue.push(Event{Seq: seq + 1, Data: tick{}})
		}
		sub.signal()
		sub.mu.Unlock()
		synctest.Wait()
		if len(read) != 2 {
			t.Fatalf("%d of 2 readers woke up", len(read))
		}
	})
}
