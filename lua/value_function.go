package lua

import "unsafe"

// Func is a function of the host. It reads its arguments from c, stores its
// results with c.Return or c.Push, and returns an error to raise it in Lua.
// It may block; c.Context tells when to give up.
type Func func(c *Call) error

// Function is a Lua closure or a host function.
type Function struct {
	header
	id    uint32
	proto *Proto // of a Lua closure
	host  *host  // of a host function
	// upvalues of a Lua closure.
	upvalues []*Upvalue
	// bound are the values of a host function made by Bind.
	bound []Value
}

// host is what all instances of one host function share.
type host struct {
	// name is the name the function is registered under, such as
	// "string.format"; saved states refer to it by this name.
	name string
	fn   Func
	// builtin is set for functions the engine itself carries out because they
	// switch frames or threads.
	builtin builtin
}

// NewFunc returns a host function. The name identifies it in saved states and
// should be unique in the program.
func NewFunc(name string, fn Func) *Function {
	return &Function{header: header{kind: KindFunction}, host: &host{name: name, fn: fn}}
}

// Bind returns a new instance of the host function f that carries values of
// its own, which it reaches with Call.Upvalue and Call.SetUpvalue. Being plain
// values they are forked and saved with it, which captured Go variables are
// not.
func (f *Function) Bind(values ...Value) *Function {
	bound := append([]Value(nil), values...)
	return &Function{header: header{kind: KindFunction}, host: f.host, bound: bound}
}

// Value returns f as a value.
func (f *Function) Value() Value { return Value{unsafe.Pointer(f), 0} }

// HostName returns the registered name of a host function, or "" for a
// function written in Lua.
func (f *Function) HostName() string {
	if f.host == nil {
		return ""
	}
	return f.host.name
}

// Upvalue is a variable of an enclosing function. While that function runs it
// is open and lives on the stack of its thread; then it is closed and holds
// its own value.
type Upvalue struct {
	header
	id    uint32
	v     *Value // into the stack, or to closed
	close Value
	// While open: the thread, the stack position, and the next open upvalue
	// of the thread further down its stack.
	thread *Thread
	at     int
	next   *Upvalue
}

func newUpvalue(v Value) *Upvalue {
	u := &Upvalue{header: header{kind: kindLight}, close: v}
	u.v = &u.close
	return u
}

func (u *Upvalue) isOpen() bool { return u.v != &u.close }

// The sizes of closures that are allocated together with their upvalue lists.
type (
	closure1 struct {
		Function
		list [1]*Upvalue
	}
	closure2 struct {
		Function
		list [2]*Upvalue
	}
	closure4 struct {
		Function
		list [4]*Upvalue
	}
)

const closureSize = int(unsafe.Sizeof(closure1{}))

func newClosure(p *Proto) *Function {
	var f *Function
	switch n := len(p.upvalues); {
	case n == 0:
		f = &Function{}
	case n == 1:
		c := &closure1{}
		f, c.upvalues = &c.Function, c.list[:]
	case n == 2:
		c := &closure2{}
		f, c.upvalues = &c.Function, c.list[:]
	case n <= 4:
		c := &closure4{}
		f, c.upvalues = &c.Function, c.list[:n]
	default:
		f = &Function{upvalues: make([]*Upvalue, n)}
	}
	f.kind, f.proto = KindFunction, p
	return f
}

// identity returns a value that stands for the variable itself.
func (u *Upvalue) identity() Value { return Value{unsafe.Pointer(u), 0} }

// newClosure returns a closure of p created by a function with the given
// registers.
func (s *State) newClosure(t *Thread, outer *Function, p *Proto, base int) *Function {
	f := newClosure(p)
	for i := range p.upvalues {
		d := &p.upvalues[i]
		if d.inStack {
			f.upvalues[i] = t.findUpvalue(base + int(d.index))
		} else {
			f.upvalues[i] = outer.upvalues[d.index]
		}
	}
	s.account.memory += int64(closureSize)
	return f
}
