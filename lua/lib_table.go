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
