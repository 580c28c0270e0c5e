package lua

import (
	"math"
	"unsafe"
)

// TableLib is the library "table".
var TableLib = NewLibrary("table", []Reg{
	{"concat", tableConcat},
	{"insert", tableInsert},
	{"pack", tablePack},
	{"unpack", tableUnpack},
	{"remove", tableRemove},
	{"move", tableMove},
	{"sort", tableSort},
}, nil, nil)

// The metamethods a value needs to stand in for a table.
const (
	toRead uint8 = 1 << iota
	toWrite
	toMeasure
)

// checkList checks that argument i is a table, or has the metamethods to be
// used like one.
func (c *Call) checkList(i int, uses uint8) error {
	v := c.Arg(i)
	if v.isTable() {
		return nil
	}
	meta := c.Metatable(v)
	if meta == nil ||
		uses&toRead != 0 && meta.GetString("__index").IsNil() ||
		uses&toWrite != 0 && meta.GetString("__newindex").IsNil() ||
		uses&toMeasure != 0 && meta.GetString("__len").IsNil() {
		return c.TypeError(i, "table")
	}
	return nil
}

// checkLength is checkList for functions that need the length as well.
func (c *Call) checkLength(i int, uses uint8) (int64, error) {
	if err := c.checkList(i, uses|toMeasure); err != nil {
		return 0, err
	}
	return c.Len(c.Arg(i))
}

// plainTable gives the table v holds when no metamethod can interfere.
func plainTable(v Value) *Table {
	if t, ok := v.AsTable(); ok && t.meta == nil {
		return t
	}
	return nil
}

func (c *Call) getInt(v Value, i int64) (Value, error) {
	if t := plainTable(v); t != nil {
		return t.getInt(i), nil
	}
	return c.Index(v, Int(i))
}

func (c *Call) setInt(v Value, i int64, x Value) error {
	if t := plainTable(v); t != nil {
		return t.setInt(c.state, i, x)
	}
	return c.SetIndex(v, Int(i), x)
}

// copyElement does dst[to] = src[from].
func (c *Call) copyElement(dst Value, to int64, src Value, from int64) error {
	if err := c.Step(1); err != nil {
		return err
	}
	x, err := c.getInt(src, from)
	if err != nil {
		return err
	}
	return c.setInt(dst, to, x)
}

// elements gives the array part of a plain table whose length is n, for
// moving elements in place; nil when the elements are elsewhere.
func elements(v Value, n int64) []Value {
	t := plainTable(v)
	if t == nil || n == 0 || int64(t.alen) != n {
		return nil
	}
	if t.bits&bitCopyOnWrite != 0 {
		t.own()
	}
	return unsafe.Slice((*Value)(t.arr), t.alen)
}

func tableInsert(c *Call) error {
	n, err := c.checkLength(1, toRead|toWrite)
	if err != nil {
		return err
	}
	list, end := c.Arg(1), int64(uint64(n)+1)
	switch c.NArgs() {
	case 2:
		return c.setInt(list, end, c.Arg(2))
	case 3:
	default:
		return c.Errorf("wrong number of arguments to 'insert'")
	}
	pos, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	if uint64(pos)-1 >= uint64(end) {
		return c.ArgError(2, "position out of bounds")
	}
	if err := c.moveUp(list, pos, end); err != nil {
		return err
	}
	return c.setInt(list, pos, c.Arg(3))
}

// moveUp moves the elements from pos to end-1 one place up.
func (c *Call) moveUp(list Value, pos, end int64) error {
	if all := elements(list, end-1); pos < end && all != nil {
		if err := c.Step(int(end-pos)/8 + 1); err != nil {
			return err
		}
		if err := c.setInt(list, end, all[end-2]); err != nil {
			return err
		}
		all = elements(list, end)
		if all != nil {
			copy(all[pos:end-1], all[pos-1:end-2])
			return nil
		}
		end--
	}
	for i := end; i > pos; i-- {
		if err := c.copyElement(list, i, list, i-1); err != nil {
			return err
		}
	}
	return nil
}

func tableRemove(c *Call) error {
	size, err := c.checkLength(1, toRead|toWrite)
	if err != nil {
		return err
	}
	pos, err := c.OptInt(2, size)
	if err != nil {
		return err
	}
	if pos != size && uint64(pos)-1 > uint64(size) {
		return c.ArgError(2, "position out of bounds")
	}
	list := c.Arg(1)
	removed, err := c.getInt(list, pos)
	if err != nil {
		return err
	}
	if all := elements(list, size); pos < size && all != nil {
		if err := c.Step(int(size-pos)/8 + 1); err != nil {
			return err
		}
		copy(all[pos-1:], all[pos:])
		pos = size
	}
	for ; pos < size; pos++ {
		if err := c.copyElement(list, pos, list, pos+1); err != nil {
			return err
		}
	}
	if err := c.setInt(list, pos, Nil); err != nil {
		return err
	}
	return c.Return(removed)
}

func tableMove(c *Call) error {
	from, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	end, err := c.CheckInt(3)
	if err != nil {
		return err
	}
	to, err := c.CheckInt(4)
	if err != nil {
		return err
	}
	target := 1
	if !c.Arg(5).IsNil() {
		target = 5
	}
	if err := c.checkList(1, toRead); err != nil {
		return err
	}
	if err := c.checkList(target, toWrite); err != nil {
		return err
	}
	src, dst := c.Arg(1), c.Arg(target)
	if end >= from {
		if from <= 0 && end >= math.MaxInt64+from {
			return c.ArgError(3, "too many elements to move")
		}
		if to > math.MaxInt64-(end-from) {
			return c.ArgError(4, "destination wrap around")
		}
		if err := c.moveRange(dst, to, src, from, end); err != nil {
			return err
		}
	}
	return c.Return(dst)
}

// moveRange copies src[from..end] to dst[to...], upwards unless the two
// ranges overlap in a way that forbids it.
func (c *Call) moveRange(dst Value, to int64, src Value, from, end int64) error {
	last := end - from
	upwards := to > end || to <= from
	if !upwards && src != dst {
		same, err := c.Equal(src, dst)
		if err != nil {
			return err
		}
		upwards = !same
	}
	if upwards {
		for i := int64(0); i <= last; i++ {
			if err := c.copyElement(dst, to+i, src, from+i); err != nil {
				return err
			}
		}
		return nil
	}
	for i := last; i >= 0; i-- {
		if err := c.copyElement(dst, to+i, src, from+i); err != nil {
			return err
		}
	}
	return nil
}

func tableConcat(c *Call) error {
	last, err := c.checkLength(1, toRead)
	if err != nil {
		return err
	}
	sep, err := c.OptString(2, "")
	if err != nil {
		return err
	}
	first, err := c.OptInt(3, 1)
	if err != nil {
		return err
	}
	if last, err = c.OptInt(4, last); err != nil {
		return err
	}
	if first > last {
		return c.returnString("")
	}
	out := textBuffer{c: c}
	for i := first; ; i++ {
		if err := c.addElement(&out, i); err != nil {
			return err
		}
		if i == last {
			return out.finish()
		}
		if err := out.add(sep); err != nil {
			return err
		}
	}
}

// addElement adds element i of the first argument to the result of concat.
func (c *Call) addElement(out *textBuffer, i int64) error {
	if err := c.Step(1); err != nil {
		return err
	}
	v, err := c.getInt(c.Arg(1), i)
	switch {
	case err != nil:
		return err
	case v.isString():
		return out.add(v.str().s)
	case v.isNumber():
		return out.add(v.String())
	}
	return c.Errorf("invalid value (%s) at index %d in table for 'concat'", c.state.typeName(v), i)
}

func tablePack(c *Call) error {
	n := c.NArgs()
	t, err := c.NewTable(n, 1)
	if err != nil {
		return err
	}
	for i, v := range c.Args() {
		if err := t.setInt(c.state, int64(i)+1, v); err != nil {
			return err
		}
	}
	if err := t.setStr(c.state, packCountKey, Int(int64(n))); err != nil {
		return err
	}
	return c.Return(t.Value())
}

// packCountKey is the key at which table.pack stores the number of values.
var packCountKey = newConstant("n")

func tableUnpack(c *Call) error {
	first, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	list := c.Arg(1)
	var last int64
	if c.Arg(3).IsNil() {
		last, err = c.Len(list)
	} else {
		last, err = c.CheckInt(3)
	}
	if err != nil || first > last {
		return err
	}
	n := uint64(last) - uint64(first)
	if n >= math.MaxInt32 {
		return c.Errorf("too many results to unpack")
	}
	if err := c.reserve(int(n)+1, "too many results to unpack"); err != nil {
		return err
	}
	for i := uint64(0); i <= n; i++ {
		v, err := c.getInt(list, int64(uint64(first)+i))
		if err != nil {
			return err
		}
		c.Push(v)
	}
	return nil
}

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
