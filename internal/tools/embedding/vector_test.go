package embedding

import (
	"math"
	"testing"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	a, b := quantize([]float32{0.3, -0.4, 0}), quantize([]float32{3, -4, 0})
	if got := cosine(a, b); got < 0.999 {
		t.Errorf("same direction: %v", got)
	}
	if got := cosine(a, quantize([]float32{0, 0, 1})); got != 0 {
		t.Errorf("right angle: %v", got)
	}
	if got := cosine(a, quantize([]float32{-0.3, 0.4, 0})); got > -0.999 {
		t.Errorf("opposite: %v", got)
	}
	if cosine(a, quantize([]float32{1})) != 0 || cosine(a, nil) != 0 {
		t.Error("vectors of different models are compared")
	}
	for _, bad := range [][]float32{nil, {0, 0}, {float32(math.NaN()), 1}, {float32(math.Inf(1)), 1}} {
		if quantize(bad) != nil {
			t.Errorf("%v has a direction", bad)
		}
	}
	if got := vectorFrom(a.bytes()); cosine(got, a) < 0.999 {
		t.Errorf("stored %v as %v", a, got)
	}
}

// BenchmarkCosine compares one search with ten thousand tools.
func BenchmarkCosine(b *testing.B) {
	values := make([]float32, 1024)
	for i := range values {
		values[i] = float32(i%7) - 3
	}
	v := quantize(values)
	for b.Loop() {
		for range 10_000 {
			cosine(v, v)
		}
	}
}
