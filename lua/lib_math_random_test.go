package lua

import "testing"

// The numbers are those that lua5.4 gives after math.randomseed(42) and
// math.randomseed(1, 2).
func TestRandomGivesTheReferenceNumbers(t *testing.T) {
	t.Parallel()
	var r random
	r.seed(42, 0)
	for _, want := range []int64{-1276290044721465627, 8333941968102511665, -8358531260401861301} {
		if got := int64(r.next()); got != want {
			t.Errorf("next() = %d, want %d", got, want)
		}
	}
	if got, want := r.float(), 0.79358935263827257; got != want {
		t.Errorf("float() = %v, want %v", got, want)
	}
	for _, want := range []uint64{950, 576, 263, 626, 153} {
		if got := 1 + r.below(999); got != want {
			t.Errorf("1 + below(999) = %d, want %d", got, want)
		}
	}
	r.seed(1, 2)
	if got, want := int64(r.next()), int64(8291693048688576641); got != want {
		t.Errorf("next() = %d, want %d", got, want)
	}
	if got := r.below(0); got != 0 {
		t.Errorf("below(0) = %d", got)
	}
	if got, want := int64(r.below(1<<64-1)+1<<63), int64(4419330032540126364); got != want {
		t.Errorf("number from the whole range = %d, want %d", got, want)
	}
}
