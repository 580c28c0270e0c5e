package lua

// Proto is a compiled function. It never changes after compilation (but for
// the hints, which are only a cache) and may be shared by states on different
// goroutines.
type Proto struct {
	code      []instruction
	constants []Value
	protos    []*Proto
	upvalues  []upvalueDesc
	lines     []int32 // of each instruction
	locals    []localVar
	// hints remember, for each access with a constant key, which entry of the
	// table had it. They are read and written atomically and verified at use.
	hints []uint32

	source   string // chunk name
	line     int32  // where the function begins; 0 for a main chunk
	lastLine int32
	params   uint8
	vararg   bool
	maxStack uint8 // registers needed
}

// hosted reports whether the function is the host's own, written in Lua: its
// chunk's name begins with "=[", as that of host functions is "=[C]". A tail
// call of it does not take the frame of its caller, whose line errors and
// tracebacks can then still tell.
func (p *Proto) hosted() bool { return len(p.source) > 1 && p.source[:2] == "=[" }

// upvalueDesc says where a closure finds an upvalue when it is created.
type upvalueDesc struct {
	name    string
	inStack bool // a register of the enclosing function, else an upvalue of it
	index   uint8
	kind    varKind
}

// localVar is the debug information of a local variable: the instructions for
// which it is alive.
type localVar struct {
	name       string
	start, end int32
	reg        uint8
}

// size estimates the bytes of a compiled function for the memory account.
func (p *Proto) size() int {
	n := 200 + len(p.code)*16 + len(p.constants)*16 + len(p.locals)*32 + len(p.upvalues)*32
	for _, q := range p.protos {
		n += q.size()
	}
	return n
}
