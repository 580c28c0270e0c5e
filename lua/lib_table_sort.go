package lua

import "math"

// sorting is one call of table.sort. The elements are sorted outside of the
// table, so that an order function can do to the table what it likes. The
// quicksort compares and swaps in the same sequence as the reference, which
// gives equal elements the same places and finds the same inconsistent order
// functions.
type sorting struct {
	c     *Call
	list  []Value // element i of the table is list[i-1]
	order Value   // nil: the operator <
}

const errOrderFunction = "invalid order function for sorting"

// shuffleLimit is the size from which on pivots are chosen at random after a
// bad partition.
const shuffleLimit = 100

func tableSort(c *Call) error {
	n, err := c.checkLength(1, toRead|toWrite)
	if err != nil || n < 2 {
		return err
	}
	if n >= math.MaxInt32 {
		return c.ArgError(1, "array too big")
	}
	order := c.Arg(2)
	if !order.IsNil() && !order.isFunction() {
		return c.TypeError(2, "function")
	}
	if err := c.Alloc(int(n) * int(valueSize)); err != nil {
		return err
	}
	if err := c.Step(int(n)); err != nil {
		return err
	}
	s := sorting{c: c, list: make([]Value, n), order: order}
	table := c.Arg(1)
	for i := range s.list {
		if s.list[i], err = c.getInt(table, int64(i)+1); err != nil {
			return err
		}
	}
	failure := s.run(0, int(n)-1, 0)
	if failure != nil && isFatal(failure) {
		return failure
	}
	for i, v := range s.list {
		if err := c.setInt(table, int64(i)+1, v); err != nil {
			return err
		}
	}
	return failure
}

// less tells whether a comes before b.
func (s *sorting) less(a, b Value) (bool, error) {
	if err := s.c.Step(1); err != nil {
		return false, err
	}
	if !s.order.IsNil() {
		v, err := s.c.call1(s.order, a, b)
		return v.Truthy(), err
	}
	switch {
	case a.isInt() && b.isInt():
		return a.int() < b.int(), nil
	case a.isFloat() && b.isFloat():
		return a.float() < b.float(), nil
	case a.isString() && b.isString():
		return a.str().s < b.str().s, nil
	}
	return s.c.Less(a, b)
}

// swapIfLess exchanges elements i and j when element j comes before i.
func (s *sorting) swapIfLess(i, j int) error {
	less, err := s.less(s.list[j], s.list[i])
	if less {
		s.list[i], s.list[j] = s.list[j], s.list[i]
	}
	return err
}

// run sorts the elements from lo to up, both included. It recurses for the
// smaller part only, so its depth is logarithmic.
func (s *sorting) run(lo, up int, shuffle uint) error {
	for lo < up {
		if err := s.swapIfLess(lo, up); err != nil {
			return err
		}
		if up-lo == 1 {
			return nil
		}
		pivot, err := s.choosePivot(lo, up, shuffle)
		if err != nil || up-lo == 2 {
			return err
		}
		middle, err := s.partition(lo, up, pivot)
		if err != nil {
			return err
		}
		var smaller int
		if middle-lo < up-middle {
			err = s.run(lo, middle-1, shuffle)
			smaller = middle - lo
			lo = middle + 1
		} else {
			err = s.run(middle+1, up, shuffle)
			smaller = up - middle
			up = middle - 1
		}
		if err != nil {
			return err
		}
		if (up-lo)/128 > smaller {
			shuffle = shuffle*6364136223846793005 + 1442695040888963407
		}
	}
	return nil
}

// choosePivot puts elements lo, pivot and up in order. The pivot is the one in
// the middle, or by chance one of the second and third quarters.
func (s *sorting) choosePivot(lo, up int, shuffle uint) (int, error) {
	// The reference counts elements from 1, which decides the rounding.
	pivot := (lo+up+2)/2 - 1
	if up-lo >= shuffleLimit && shuffle != 0 {
		quarter := (up - lo) / 4
		pivot = lo + quarter + int(shuffle>>33%uint(quarter*2))
	}
	less, err := s.less(s.list[pivot], s.list[lo])
	if err != nil {
		return 0, err
	}
	if less {
		s.list[pivot], s.list[lo] = s.list[lo], s.list[pivot]
		return pivot, nil
	}
	return pivot, s.swapIfLess(pivot, up)
}

// partition moves what comes before the pivot down and what comes after it
// up, and gives the place of the pivot between the two.
func (s *sorting) partition(lo, up, pivot int) (int, error) {
	list := s.list
	p := list[pivot]
	list[pivot], list[up-1] = list[up-1], list[pivot]
	for i, j := lo, up-1; ; {
		for i++; ; i++ {
			less, err := s.less(list[i], p)
			if err != nil {
				return 0, err
			}
			if !less {
				break
			}
			if i == up-1 {
				return 0, s.c.Errorf(errOrderFunction)
			}
		}
		for j--; ; j-- {
			less, err := s.less(p, list[j])
			if err != nil {
				return 0, err
			}
			if !less {
				break
			}
			if j < i {
				return 0, s.c.Errorf(errOrderFunction)
			}
		}
		if j < i {
			list[up-1], list[i] = list[i], list[up-1]
			return i, nil
		}
		list[i], list[j] = list[j], list[i]
	}
}
