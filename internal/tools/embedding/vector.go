package embedding

import "math"

// Vector is the direction of an embedding, with a byte per dimension: enough to compare
// directions, in a quarter of the memory.
type Vector []int8

// quantize scales a vector so that its greatest component fits; nil if it has no
// direction.
func quantize(values []float32) Vector {
	greatest := float32(0)
	for _, v := range values {
		if v != v || math.IsInf(float64(v), 0) {
			return nil
		}
		greatest = max(greatest, v, -v)
	}
	if greatest == 0 {
		return nil
	}
	out := make(Vector, len(values))
	for i, v := range values {
		out[i] = int8(math.Round(float64(v / greatest * 127)))
	}
	return out
}

// cosine is how similar two directions are, from -1 to 1; 0 if they are of different
// models.
func cosine(a, b Vector) float32 {
	if len(a) != len(b) || len(a) == 0 {
		return 0
	}
	var dot, aa, bb int64
	for i, x := range a {
		y := int32(b[i])
		dot += int64(int32(x) * y)
		aa += int64(int32(x) * int32(x))
		bb += int64(y * y)
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return float32(float64(dot) / math.Sqrt(float64(aa)*float64(bb)))
}

func (v Vector) bytes() []byte {
	out := make([]byte, len(v))
	for i, x := range v {
		out[i] = byte(x)
	}
	return out
}

func vectorFrom(raw []byte) Vector {
	out := make(Vector, len(raw))
	for i, x := range raw {
		out[i] = int8(x)
	}
	return out
}
