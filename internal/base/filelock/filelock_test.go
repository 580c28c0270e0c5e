package filelock

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new folder", "lock")
	first, err := Try(path)
	if err != nil || first == nil {
		t.Fatal(first, err)
	}
	if second, err := Try(path); second != nil || err != nil {
		t.Fatalf("a second holder: %v %v", second, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Wait(ended, path); err == nil {
		t.Error("waiting went on after its context ended")
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	var inside, count atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			held, err := Wait(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two holders at a time")
			}
			count.Add(1)
			inside.Add(-1)
			if err := held.Unlock(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if count.Load() != 8 {
		t.Errorf("%d of 8 got the lock", count.Load())
	}
}
