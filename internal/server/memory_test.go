package server

import (
	"slices"
	"testing"
)

func TestMemoryIsReturnedOnceAfterEachLoad(t *testing.T) {
	t.Parallel()
	var (
		r     rest
		total uint64
		got   []bool
	)
	for _, mb := range []uint64{20, 0, 0, 0, 30, 40, 1, 0, 0} {
		total += mb << 20
		got = append(got, r.begins(total))
	}
	if want := []bool{false, true, false, false, false, false, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("returned in the periods %v, want %v", got, want)
	}
	if allocated() == 0 {
		t.Error("nothing was allocated")
	}
}
