package lua

import "testing"

// BenchmarkFreshState is the cost of a state with every library.
func BenchmarkFreshState(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := New(Options{Seed: 1}).Open(All()...); err != nil {
			b.Fatal(err)
		}
	}
}
