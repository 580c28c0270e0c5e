package lua

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
