package lua

import (
	"fmt"
	"hash/maphash"
	"math"
	"unsafe"
)

// Kind tells what a Value holds. Integers and floats are two kinds of the one
// Lua type "number"; Kind.Type gives the name Lua's type function uses.
type Kind uint8

// The kinds of values.
const (
	KindNil Kind = iota
	KindBool
	KindInt
	KindFloat
	KindString
	KindTable
	KindFunction
	KindUserdata
	KindThread
	// kindLight marks identities without content, such as the result of
	// debug.upvalueid. Lua calls them userdata.
	kindLight
)

var typeNames = [...]string{
	"nil", "boolean", "number", "number", "string", "table", "function", "userdata", "thread", "userdata",
}

// Type returns the name Lua gives to the type of values of this kind.
func (k Kind) Type() string { return typeNames[k] }

// header is the first field of every object a Value can point to.
type header struct {
	kind Kind
	mark uint8 // epoch of the last mark walk that reached the object
	// flags of a table cache, one bit per metamethod, that the table (used as
	// a metatable) does not define it. See vm_metamethod.go.
	flags uint8
	bits  uint8 // bitShared and friends
}

const (
	// bitShared objects belong to no state (library functions, constants);
	// the mark walk neither visits nor counts them.
	bitShared uint8 = 1 << iota
	// bitCopyOnWrite tables borrow their content from a library template.
	bitCopyOnWrite
	// bitFinalizer objects are on their state's list of things with __gc.
	bitFinalizer
)

// Value is any Lua value. The zero Value is nil. Values are small and copied
// freely; those pointing to tables, functions, userdata and threads share them.
type Value struct {
	// p is nil for nil, points to one of the static headers below for booleans
	// and numbers (payload in n), and to the object otherwise (n is 0).
	p unsafe.Pointer
	n uint64
}

var (
	intHeader   = header{kind: KindInt}
	floatHeader = header{kind: KindFloat}
	boolHeader  = header{kind: KindBool}
)

// Nil is the nil value.
var Nil Value

// Int returns an integer value.
func Int(i int64) Value { return Value{unsafe.Pointer(&intHeader), uint64(i)} }

// Float returns a float value.
func Float(f float64) Value { return Value{unsafe.Pointer(&floatHeader), math.Float64bits(f)} }

// Bool returns a boolean value.
func Bool(b bool) Value {
	if b {
		return Value{unsafe.Pointer(&boolHeader), 1}
	}
	return Value{unsafe.Pointer(&boolHeader), 0}
}

// String returns a string value. Lua strings are bytes; s may hold any.
func String(s string) Value { return Value{unsafe.Pointer(newStr(s)), 0} }

// Kind returns what v holds.
func (v Value) Kind() Kind {
	if v.p == nil {
		return KindNil
	}
	return (*header)(v.p).kind
}

// TypeName returns the name of v's type without regard to metatables.
func (v Value) TypeName() string { return v.Kind().Type() }

// IsNil reports whether v is nil.
func (v Value) IsNil() bool { return v.p == nil }

// Truthy reports whether v counts as true in a condition: everything but nil
// and false does.
func (v Value) Truthy() bool { return v.p != nil && (v.p != unsafe.Pointer(&boolHeader) || v.n != 0) }

// AsBool returns the boolean v holds.
func (v Value) AsBool() (value, ok bool) {
	return v.n != 0, v.p == unsafe.Pointer(&boolHeader)
}

// AsInt returns v as an integer when it is an integer, or a float with an
// exact integer value. Strings are not converted.
func (v Value) AsInt() (int64, bool) {
	if v.p == unsafe.Pointer(&intHeader) {
		return int64(v.n), true
	}
	if v.p == unsafe.Pointer(&floatHeader) {
		return floatToInt(math.Float64frombits(v.n))
	}
	return 0, false
}

// AsFloat returns v as a float when it is a number. Strings are not converted.
func (v Value) AsFloat() (float64, bool) {
	if v.p == unsafe.Pointer(&floatHeader) {
		return math.Float64frombits(v.n), true
	}
	if v.p == unsafe.Pointer(&intHeader) {
		return float64(int64(v.n)), true
	}
	return 0, false
}

// AsString returns the string v holds. Numbers are not converted.
func (v Value) AsString() (string, bool) {
	if v.isString() {
		return (*Str)(v.p).s, true
	}
	return "", false
}

// AsTable returns the table v holds.
func (v Value) AsTable() (*Table, bool) {
	if v.Kind() == KindTable {
		return (*Table)(v.p), true
	}
	return nil, false
}

// AsFunction returns the function v holds.
func (v Value) AsFunction() (*Function, bool) {
	if v.Kind() == KindFunction {
		return (*Function)(v.p), true
	}
	return nil, false
}

// AsUserdata returns the userdata v holds.
func (v Value) AsUserdata() (*Userdata, bool) {
	if v.Kind() == KindUserdata {
		return (*Userdata)(v.p), true
	}
	return nil, false
}

// AsThread returns the coroutine v holds.
func (v Value) AsThread() (*Thread, bool) {
	if v.Kind() == KindThread {
		return (*Thread)(v.p), true
	}
	return nil, false
}

func (v Value) isInt() bool    { return v.p == unsafe.Pointer(&intHeader) }
func (v Value) isFloat() bool  { return v.p == unsafe.Pointer(&floatHeader) }
func (v Value) isNumber() bool { return v.isInt() || v.isFloat() }
func (v Value) isString() bool { return v.p != nil && (*header)(v.p).kind == KindString }
func (v Value) isTable() bool  { return v.p != nil && (*header)(v.p).kind == KindTable }
func (v Value) isFunction() bool {
	return v.p != nil && (*header)(v.p).kind == KindFunction
}
func (v Value) isFalse() bool       { return v.p == nil || (v.p == unsafe.Pointer(&boolHeader) && v.n == 0) }
func (v Value) int() int64          { return int64(v.n) }
func (v Value) float() float64      { return math.Float64frombits(v.n) }
func (v Value) str() *Str           { return (*Str)(v.p) }
func (v Value) table() *Table       { return (*Table)(v.p) }
func (v Value) function() *Function { return (*Function)(v.p) }

// putInt makes v the integer with the bits n. Most often v is one already, and
// a pointer that is not written costs the collector nothing.
func (v *Value) putInt(n uint64) {
	v.n = n
	if v.p != unsafe.Pointer(&intHeader) {
		v.p = unsafe.Pointer(&intHeader)
	}
}

// putFloat makes v the float f.
func (v *Value) putFloat(f float64) {
	v.n = math.Float64bits(f)
	if v.p != unsafe.Pointer(&floatHeader) {
		v.p = unsafe.Pointer(&floatHeader)
	}
}

// RawEqual compares without metamethods, as Lua's rawequal does: an integer
// and a float are equal when they stand for the same number.
func RawEqual(a, b Value) bool {
	if a == b {
		return a.p != unsafe.Pointer(&floatHeader) || !math.IsNaN(a.float())
	}
	switch a.Kind() {
	case KindString:
		return b.isString() && a.str().equal(b.str())
	case KindInt:
		return b.isFloat() && float64(a.int()) == b.float() && intEqualsFloat(a.int(), b.float())
	case KindFloat:
		if b.isFloat() {
			return a.float() == b.float()
		}
		return b.isInt() && intEqualsFloat(b.int(), a.float())
	}
	return false
}

func intEqualsFloat(i int64, f float64) bool {
	j, ok := floatToInt(f)
	return ok && i == j
}

// floatToInt converts f when it has an exact integer representation.
func floatToInt(f float64) (int64, bool) {
	if f >= -0x1p63 && f < 0x1p63 {
		i := int64(f)
		return i, float64(i) == f
	}
	return 0, false
}

// String formats v as Lua's tostring does without metamethods. Objects print
// as their type and a number that is unique in their state once they were
// printed by a script; before that they print as their type alone.
func (v Value) String() string {
	switch v.Kind() {
	case KindNil:
		return "nil"
	case KindBool:
		if v.n != 0 {
			return "true"
		}
		return "false"
	case KindInt:
		return formatInt(v.int())
	case KindFloat:
		return formatFloat(v.float())
	case KindString:
		return v.str().s
	}
	if id := objectID(v); id != 0 {
		return formatObject(v, id)
	}
	return v.TypeName()
}

func formatObject(v Value, id uint32) string {
	name := v.TypeName()
	if fn, ok := v.AsFunction(); ok && fn.host != nil {
		name = "function: builtin"
	}
	return fmt.Sprintf("%s: 0x%08x", name, uint64(id)*0x20)
}

// objectID returns where the identity number of an object is kept: 0 until
// one was given.
func objectID(v Value) uint32 {
	if slot := idSlot(v); slot != nil {
		return *slot
	}
	return 0
}

func idSlot(v Value) *uint32 {
	switch v.Kind() {
	case KindTable:
		return &v.table().id
	case KindFunction:
		return &v.function().id
	case KindUserdata:
		return &(*Userdata)(v.p).id
	case KindThread:
		return &(*Thread)(v.p).id
	case kindLight:
		return &(*Upvalue)(v.p).id
	}
	return nil
}

// Userdata carries a Go value through Lua. Scripts can only pass it around and
// do what its metatable allows.
type Userdata struct {
	header
	id   uint32
	meta *Table
	// Data is the host's value. The engine never looks into it.
	Data any
	// values are the user values scripts reach through debug.setuservalue.
	values []Value
}

// NewUserdata returns a userdata holding data with the given metatable, which
// may be nil.
func NewUserdata(data any, meta *Table) *Userdata {
	return &Userdata{header: header{kind: KindUserdata}, Data: data, meta: meta}
}

// Value returns u as a value.
func (u *Userdata) Value() Value { return Value{unsafe.Pointer(u), 0} }

// Metatable returns u's metatable, or nil.
func (u *Userdata) Metatable() *Table { return u.meta }

// SetMetatable sets or, with nil, removes u's metatable.
func (u *Userdata) SetMetatable(meta *Table) { u.meta = meta }

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
