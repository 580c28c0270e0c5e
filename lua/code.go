package lua

import "slices"

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

// instruction is one step of the machine: 8 bits of opcode, register A in the
// next 8, then operands B, C and D of 16 bits each. Jumps and large indices
// take C and D together as a signed 32-bit J.
type instruction uint64

func abc(op opcode, a, b, c int) instruction {
	return instruction(op) | instruction(uint8(a))<<8 | instruction(uint16(b))<<16 | instruction(uint16(c))<<32
}

func abj(op opcode, a, b, j int) instruction {
	return instruction(op) | instruction(uint8(a))<<8 | instruction(uint16(b))<<16 | instruction(uint32(int32(j)))<<32
}

func (i instruction) op() opcode { return opcode(i) }
func (i instruction) a() int     { return int(uint8(i >> 8)) }
func (i instruction) b() int     { return int(uint16(i >> 16)) }
func (i instruction) c() int     { return int(uint16(i >> 32)) }
func (i instruction) d() int     { return int(i >> 48) }
func (i instruction) j() int     { return int(int32(i >> 32)) }

// negated tells of a comparison whether it jumps when it does not hold.
func (i instruction) negated() bool { return (i.op()-opEq)&1 == 1 }

// opcode says what an instruction does. R is a register, K a constant, U an
// upvalue; RK(x) is R[x] below 256 and K[x-256] above.
type opcode uint8

const (
	opMove      opcode = iota // R[A] = R[B]
	opLoadI                   // R[A] = integer J
	opLoadK                   // R[A] = K[J]
	opLoadNil                 // R[A..A+B] = nil
	opLoadTrue                // R[A] = true
	opLoadFalse               // R[A] = false
	opFalseSkip               // R[A] = false and skip the next instruction
	opGetUpval                // R[A] = U[B]
	opSetUpval                // U[B] = R[A]
	opGetTabUp                // R[A] = U[B][K[C]], hint D
	opSetTabUp                // U[A][K[B]] = RK(C), hint D
	opGetTable                // R[A] = R[B][R[C]]
	opGetInt                  // R[A] = R[B][C]
	opGetField                // R[A] = R[B][K[C]], hint D
	opSetTable                // R[A][R[B]] = RK(C)
	opSetInt                  // R[A][B] = RK(C)
	opSetField                // R[A][K[B]] = RK(C), hint D
	opNewTable                // R[A] = {} with room for B elements and C entries
	opSelf                    // R[A+1] = R[B]; R[A] = R[B][K[C]], hint D

	opAdd // R[A] = R[B] + R[C]; likewise down to opShr
	opSub
	opMul
	opMod
	opPow
	opDiv
	opIDiv
	opBand
	opBor
	opBxor
	opShl
	opShr
	opAddK // R[A] = R[B] + K[C], or K[C] + R[B] when D is 1; likewise
	opSubK
	opMulK
	opModK
	opPowK
	opDivK
	opIDivK
	opBandK
	opBorK
	opBxorK
	opShlK
	opShrK

	opUnm    // R[A] = -R[B]
	opBnot   // R[A] = ~R[B]
	opNot    // R[A] = not R[B]
	opLen    // R[A] = #R[B]
	opConcat // R[A] = R[A] .. … .. R[A+B-1]

	opJump // pc += J
	opEq   // if R[A] == R[B] then pc += J; the next one jumps if not
	opNe
	opLt
	opNotLt
	opLe
	opNotLe
	opEqK // as above with K[B]
	opNeK
	opLtK
	opNotLtK
	opLeK
	opNotLeK
	opGtK
	opNotGtK
	opGeK
	opNotGeK
	opTest       // if R[A] then pc += J
	opTestNot    // if not R[A] then pc += J
	opTestSet    // if R[B] then R[A] = R[B]; pc += J
	opTestNotSet // if not R[B] then R[A] = R[B]; pc += J

	opCall       // R[A..A+C-2] = R[A](R[A+1..A+B-1]); B = 0: up to top, C = 0: sets top
	opTailCall   // return R[A](R[A+1..A+B-1]); D = 1: upvalues to close
	opReturn     // return R[A..A+B-2]; B = 0: up to top; D = 1: variables to close
	opReturn0    // return
	opReturn1    // return R[A]
	opForPrep    // prepare the numeric loop at R[A]; pc += J if it does not run
	opForLoop    // next turn of the loop at R[A]: pc += J
	opTForPrep   // mark R[A+3] to be closed; pc += J
	opTForCall   // R[A+4..A+3+C] = R[A](R[A+1], R[A+2])
	opTForLoop   // if R[A+4] ~= nil then R[A+2] = R[A+4]; pc += J
	opSetList    // R[A][J+i] = R[A+i] for i = 1..B; B = 0: up to top
	opClosure    // R[A] = closure of proto J
	opVararg     // R[A..A+C-2] = ...; C = 0: sets top
	opVarargPrep // move the variable arguments out of the way
	opClose      // close variables from R[A] on
	opToClose    // R[A] is to be closed
	opTrap       // stands in for every instruction while hooks are on
)

// rkBase separates registers from constants in RK operands.
const rkBase = 256

// Globals tells which globals code can touch, before it runs: visit is called
// with each name the chunk and the functions in it mention, the same name
// perhaps more than once. It returns false when the code can reach globals
// without naming them, because it takes hold of _ENV itself. What it may then do
// with the values it finds, such as _G and load, is for the caller to judge.
func (p *Proto) Globals(visit func(name string)) bool {
	return p.globalsAt(0, visit)
}

// globalsAt is Globals of a function that has the chunk's _ENV as upvalue env.
func (p *Proto) globalsAt(env int, visit func(name string)) bool {
	named := true
	for _, i := range p.code {
		upvalue, key := i.upvalue()
		if upvalue != env {
			continue
		}
		if key < 0 {
			named = false
			continue
		}
		visit(p.constants[key].str().s)
	}
	for _, inner := range p.protos {
		for at, d := range inner.upvalues {
			if !d.inStack && int(d.index) == env {
				named = inner.globalsAt(at, visit) && named
			}
		}
	}
	return named
}

// upvalue returns the upvalue an instruction reads or writes, or -1, and the
// constant that is the key of the field it uses of it, or -1 for the upvalue
// itself.
func (i instruction) upvalue() (index, key int) {
	switch i.op() {
	case opGetTabUp:
		return i.b(), i.c()
	case opSetTabUp:
		return i.a(), i.b()
	case opGetUpval, opSetUpval:
		return i.b(), -1
	}
	return -1, -1
}

// SameCode tells whether two functions were compiled from the same text: they do
// the same whenever the variables around them are the same. Where they stand and
// where they find those variables does not matter.
func (f *Function) SameCode(g *Function) bool {
	if f.proto == nil || g.proto == nil {
		return f.proto == g.proto && f.host == g.host
	}
	return f.proto.same(g.proto, true)
}

// same compares two prototypes. The outermost may find its upvalues elsewhere.
func (p *Proto) same(q *Proto, outermost bool) bool {
	return p == q || p.params == q.params && p.vararg == q.vararg &&
		slices.Equal(p.code, q.code) &&
		slices.EqualFunc(p.constants, q.constants, sameConstant) &&
		slices.EqualFunc(p.upvalues, q.upvalues, func(a, b upvalueDesc) bool {
			return a.name == b.name && (outermost || a.inStack == b.inStack && a.index == b.index)
		}) &&
		slices.EqualFunc(p.protos, q.protos, func(a, b *Proto) bool { return a.same(b, false) })
}

func sameConstant(a, b Value) bool {
	if x, ok := a.AsString(); ok {
		y, ok := b.AsString()
		return ok && x == y
	}
	return a == b
}
