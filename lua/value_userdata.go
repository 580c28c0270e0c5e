package lua

import "unsafe"

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
