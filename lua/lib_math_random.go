package lua

import (
	"math/bits"
	"math/rand/v2"
)

// random is the generator of math.random, xoshiro256**, which gives the same
// numbers as the reference for the same seed.
type random [4]uint64

// seed starts the sequence that belongs to two numbers.
func (r *random) seed(n1, n2 uint64) {
	*r = random{n1, 0xff, n2, 0} // 0xff because the state must never be zero
	for range 16 {
		r.next()
	}
}

func (r *random) next() uint64 {
	result := bits.RotateLeft64(r[1]*5, 7) * 9
	shifted := r[1] << 17
	r[2] ^= r[0]
	r[3] ^= r[1]
	r[1] ^= r[2]
	r[0] ^= r[3]
	r[2] ^= shifted
	r[3] = bits.RotateLeft64(r[3], 45)
	return result
}

// float gives a number from 0 up to but not including 1.
func (r *random) float() float64 { return float64(r.next()>>11) * 0x1p-53 }

// below gives a number from 0 to limit, limit included, every one equally
// likely: numbers are cut to the bits of limit and drawn anew while too large.
func (r *random) below(limit uint64) uint64 {
	mask := uint64(1)<<bits.Len64(limit) - 1
	for {
		if n := r.next() & mask; n <= limit {
			return n
		}
	}
}

// seedRandom starts the generator of a state as its options say.
func seedRandom(s *State, _ *Table) error {
	if s.opts.Seed != 0 {
		s.random.seed(s.opts.Seed, 0)
	} else {
		s.random.seed(rand.Uint64(), rand.Uint64())
	}
	return nil
}

func mathRandom(c *Call) error {
	r := &c.state.random
	low, up := int64(1), int64(0)
	var err error
	switch c.NArgs() {
	case 0:
		return c.Return(Float(r.float()))
	case 1:
		if up, err = c.CheckInt(1); err != nil {
			return err
		}
		if up == 0 {
			return c.Return(Int(int64(r.next())))
		}
	case 2:
		if low, err = c.CheckInt(1); err != nil {
			return err
		}
		if up, err = c.CheckInt(2); err != nil {
			return err
		}
	default:
		return c.Errorf("wrong number of arguments")
	}
	if low > up {
		return c.ArgError(1, "interval is empty")
	}
	return c.Return(Int(low + int64(r.below(uint64(up)-uint64(low)))))
}

func mathRandomseed(c *Call) error {
	n1, n2 := int64(rand.Uint64()), int64(rand.Uint64())
	if c.NArgs() > 0 {
		var err error
		if n1, err = c.CheckInt(1); err != nil {
			return err
		}
		if n2, err = c.OptInt(2, 0); err != nil {
			return err
		}
	}
	c.state.random.seed(uint64(n1), uint64(n2))
	return c.Return(Int(n1), Int(n2))
}
