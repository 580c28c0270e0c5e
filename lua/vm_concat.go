package lua

import (
	"strconv"
	"unsafe"
)

// concat computes R[a] .. … .. R[a+n-1] of the running function into R[a],
// from right to left: runs of strings and numbers at once, others by their
// metamethods.
func (s *State) concat(t *Thread, a, n int) error {
	base := int(t.frame().fn) + 1
	for n > 1 {
		regs := t.stack[base+a : base+a+n]
		run, size := 0, 0
		for run < n {
			k := concatLen(regs[n-1-run])
			if k < 0 {
				break
			}
			size += k
			run++
		}
		if run < 2 {
			return s.concatHandled(t, a, n)
		}
		v, err := s.join(regs[n-run:], size)
		if err != nil {
			return err
		}
		n -= run - 1
		t.stack[base+a+n-1] = v
	}
	return nil
}

// concatLen returns the bytes a value needs in a concatenation, or -1. For
// numbers it is an upper bound.
func concatLen(v Value) int {
	switch v.Kind() {
	case KindString:
		return len(v.str().s)
	case KindInt:
		return 20
	case KindFloat:
		return 32
	}
	return -1
}

const maxString = 1 << 40

// join concatenates strings and numbers.
func (s *State) join(vals []Value, size int) (Value, error) {
	if len(vals) == 2 && vals[0].isString() && vals[1].isString() { // an empty string changes nothing
		if len(vals[1].str().s) == 0 {
			return vals[0], nil
		}
		if len(vals[0].str().s) == 0 {
			return vals[1], nil
		}
	}
	if size > maxString {
		return Nil, s.runtimeError("string length overflow")
	}
	if err := s.alloc(strOverhead + size); err != nil {
		return Nil, err
	}
	s.account.fuel -= int64(size >> 6)
	exact := true
	for _, v := range vals {
		exact = exact && v.isString()
	}
	if exact {
		return joinStrings(vals, size), nil
	}
	return joinMixed(vals, size), nil
}

// joinStrings concatenates strings that are size bytes long together.
func joinStrings(vals []Value, size int) Value {
	o, buf := makeStr(size)
	at := 0
	for _, v := range vals {
		at += copy(buf[at:], v.str().s)
	}
	return Value{unsafe.Pointer(o), 0}
}

// joinMixed concatenates strings and numbers that are at most size bytes long
// together.
func joinMixed(vals []Value, size int) Value {
	var scratch [128]byte
	buf := scratch[:0]
	if size > len(scratch) {
		buf = make([]byte, 0, size)
	}
	for _, v := range vals {
		buf = appendValue(buf, v)
	}
	return stringOf(buf)
}

// appendValue appends a string or number as text.
func appendValue(dst []byte, v Value) []byte {
	switch v.Kind() {
	case KindString:
		return append(dst, v.str().s...)
	case KindInt:
		return strconv.AppendInt(dst, v.int(), 10)
	}
	return appendFloat(dst, v.float())
}

// concatHandled concatenates the last two of n operands by a metamethod.
func (s *State) concatHandled(t *Thread, a, n int) error {
	base := int(t.frame().fn) + 1
	x, y := t.stack[base+a+n-2], t.stack[base+a+n-1]
	h := s.binaryHandler(evConcat, x, y)
	if h.p == nil {
		at := base + a + n - 2
		if concatLen(x) >= 0 {
			x = y
			at++
		}
		return s.typeErrorAt("concatenate", x, at)
	}
	return s.invoke(t, contConcat, a|(n-1)<<8, h, x, y)
}

// finishConcat goes on after a metamethod gave the last of the operands.
func (s *State) finishConcat(t *Thread, v Value, packed int) error {
	a, n := packed&0xff, packed>>8
	t.stack[int(t.frame().fn)+1+a+n-1] = v
	return s.concat(t, a, n)
}
