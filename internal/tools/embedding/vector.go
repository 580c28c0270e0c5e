package embedding

import "math"

// Vector is the direction of an embedding, with a byte per dimension: enough to compare
// directions, in a quarter of the memory. nil has none.
type Vector = *direction

type direction struct {
	values []int8
	length float32
}

// quantize scales a vector so that its greatest component fits; nil if it has no
// direction.
func quantize(components []float32) Vector {
	greatest := float32(0)
	for _, c := range components {
		if c != c || math.IsInf(float64(c), 0) {
			return nil
		}
		greatest = max(greatest, c, -c)
	}
	if greatest == 0 {
		return nil
	}
	values := make([]int8, len(components))
	for i, c := range components {
		values[i] = int8(math.Round(float64(c / greatest * 127)))
	}
	return directionOf(values)
}

func directionOf(values []int8) Vector {
	length := math.Sqrt(float64(product(values, values)))
	if length == 0 {
		return nil
	}
	return &direction{values, float32(length)}
}

// cosine is how similar two directions are, from -1 to 1; 0 if they are of different
// models.
func cosine(a, b Vector) float32 {
	if a == nil || b == nil || len(a.values) != len(b.values) {
		return 0
	}
	return float32(product(a.values, b.values)) / (a.length * b.length)
}

// product is the scalar product of two vectors of the same length, which is at most
// mostDimensions: the sum fits.
func product(a, b []int8) int32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 int32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += int32(x[0]) * int32(y[0])
		s1 += int32(x[1]) * int32(y[1])
		s2 += int32(x[2]) * int32(y[2])
		s3 += int32(x[3]) * int32(y[3])
	}
	for ; i < len(a); i++ {
		s0 += int32(a[i]) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

func (d *direction) bytes() []byte {
	out := make([]byte, len(d.values))
	for i, x := range d.values {
		out[i] = byte(x)
	}
	return out
}

func vectorFrom(raw []byte) Vector {
	values := make([]int8, min(len(raw), mostDimensions))
	for i := range values {
		values[i] = int8(raw[i])
	}
	return directionOf(values)
}
