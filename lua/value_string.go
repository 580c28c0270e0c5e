package lua

import (
	"hash/maphash"
	"unsafe"
)

// Str is a string object. Its bytes never change.
type Str struct {
	header
	hash uint32 // 0 until computed
	s    string
}

// hashSeed differs between processes so that scripts cannot prepare colliding
// keys. Nothing visible depends on it: tables iterate in insertion order.
var hashSeed = maphash.MakeSeed()

// numberMix is the odd multiplier that spreads integer and pointer keys.
var numberMix = maphash.String(hashSeed, "numbers") | 1

// The sizes of strings that are allocated together with their bytes.
type (
	str8 struct {
		Str
		buf [8]byte
	}
	str24 struct {
		Str
		buf [24]byte
	}
	str40 struct {
		Str
		buf [40]byte
	}
)

// strOverhead is what a string costs beside its bytes, for the memory account.
const strOverhead = int(unsafe.Sizeof(Str{}))

// newStr wraps s without copying its bytes.
func newStr(s string) *Str { return &Str{header: header{kind: KindString}, s: s} }

// makeStr returns a string object with room for n bytes and that room, which
// the caller fills before anyone else sees the object.
func makeStr(n int) (*Str, []byte) {
	switch {
	case n <= 8:
		o := &str8{Str: Str{header: header{kind: KindString}}}
		o.s = unsafe.String(&o.buf[0], n)
		return &o.Str, o.buf[:n]
	case n <= 24:
		o := &str24{Str: Str{header: header{kind: KindString}}}
		o.s = unsafe.String(&o.buf[0], n)
		return &o.Str, o.buf[:n]
	case n <= 40:
		o := &str40{Str: Str{header: header{kind: KindString}}}
		o.s = unsafe.String(&o.buf[0], n)
		return &o.Str, o.buf[:n]
	}
	buf := make([]byte, n)
	return &Str{header: header{kind: KindString}, s: unsafe.String(&buf[0], n)}, buf
}

// stringOf returns a string value with a copy of b.
func stringOf(b []byte) Value {
	o, buf := makeStr(len(b))
	copy(buf, b)
	return Value{unsafe.Pointer(o), 0}
}

// newConstant returns a hashed string that may be shared between states.
func newConstant(s string) *Str {
	o := newStr(s)
	o.bits |= bitShared
	o.hashed()
	return o
}

// hashed returns the hash, computing it at the first use.
func (s *Str) hashed() uint32 {
	if s.hash == 0 {
		s.hash = hashString(s.s)
	}
	return s.hash
}

func hashString(s string) uint32 {
	h := maphash.String(hashSeed, s)
	if h := uint32(h ^ h>>32); h != 0 {
		return h
	}
	return 1
}

func (s *Str) equal(o *Str) bool {
	if s == o {
		return true
	}
	if s.hash != 0 && o.hash != 0 && s.hash != o.hash {
		return false
	}
	return s.s == o.s
}

// value returns the string as a value.
func (s *Str) value() Value { return Value{unsafe.Pointer(s), 0} }
