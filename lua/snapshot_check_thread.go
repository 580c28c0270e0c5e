package lua

import (
	"errors"
	"fmt"
)

// The machine trusts the frames of a coroutine: that a function is where a
// frame says, that results fit where they go, that the instruction which
// called is one that calls. For a coroutine that comes from outside, check
// establishes all of it.

var (
	errStatus    = errors.New("is in an impossible state")
	errPosition  = errors.New("has a position outside its stack")
	errFunction  = errors.New("has no function where it should")
	errFrame     = errors.New("has an impossible call")
	errVariables = errors.New("has variables where none can be")
)

// check verifies a thread that does not run.
func (t *Thread) check() error {
	if len(t.stack) > maxStack+stackReserve {
		return errPosition
	}
	switch t.status {
	case suspended, failed:
	case dead:
		if len(t.frames) > 0 || len(t.pending) > 0 || t.open != nil {
			return errStatus
		}
		return nil
	default:
		return errStatus
	}
	for i := range t.frames {
		if err := t.checkFrame(i); err != nil {
			return fmt.Errorf("%w (level %d)", err, len(t.frames)-i)
		}
	}
	if t.status == suspended {
		if err := t.checkSuspended(); err != nil {
			return err
		}
	}
	return t.checkVariables()
}

// checkSuspended checks that the thread waits where it can be resumed: before
// its first call, in a yield, or in a host function that has yielded.
func (t *Thread) checkSuspended() error {
	if len(t.frames) == 0 {
		if !t.stack[0].isFunction() || len(t.pending) > 0 || t.open != nil {
			return errFunction
		}
		return nil
	}
	f := t.frame()
	if f.flags&frameHost == 0 {
		return errStatus
	}
	// Host functions that have yielded are called again.
	if b := t.function(f).host.builtin; b != builtinYield && b >= firstFrameBuiltin {
		return errStatus
	}
	return nil
}

// checkFrame checks a frame and how it was called.
func (t *Thread) checkFrame(i int) error {
	f := &t.frames[i]
	if !f.fits(len(t.stack)) || i > 0 && f.ret <= t.frames[i-1].fn {
		return errPosition
	}
	fn, ok := t.stack[f.fn].AsFunction()
	if !ok || (fn.proto == nil) != (f.flags&frameHost != 0) || f.flags&(frameFresh|frameHook|frameFinalizer) != 0 {
		return errFunction
	}
	var err error
	if fn.proto != nil {
		err = t.checkLuaFrame(i, fn.proto)
	} else {
		err = t.checkHostFrame(i, fn.host.builtin)
	}
	if err != nil {
		return err
	}
	return t.checkCaller(i)
}

// fits reports whether the positions and counts of a frame are possible on a
// stack of that size.
func (f *frame) fits(stack int) bool {
	return f.ret >= 0 && f.fn >= f.ret && f.top > f.fn && int(f.top) <= stack && f.want >= -1 && f.closing >= 0
}

// checkCaller checks that the frame below can have called frame i; that of the
// coroutine's own function has none below.
func (t *Thread) checkCaller(i int) error {
	f := &t.frames[i]
	switch {
	case i == 0:
		if f.ret != 0 || f.want != -1 || f.cont != contResults || f.flags&frameCallback != 0 {
			return errFrame
		}
		return nil
	case t.frames[i-1].flags&frameHost != 0:
		return t.checkCallback(&t.frames[i-1], f)
	default:
		return t.checkCall(&t.frames[i-1], f)
	}
}

// checkLuaFrame checks the registers of a Lua function and where it is.
func (t *Thread) checkLuaFrame(i int, p *Proto) error {
	f := &t.frames[i]
	if int(f.top) != int(f.fn)+1+int(p.maxStack) || f.pc < 0 || int(f.pc) > len(p.code) {
		return errPosition
	}
	if f.flags&frameProtected != 0 || f.extra < 0 {
		return errFrame
	}
	if !p.vararg {
		if f.fn != f.ret || f.extra != 0 {
			return errPosition
		}
		return nil
	}
	return t.checkVarargs(i, p)
}

// checkVarargs checks that the variable arguments lie between the place of the
// call and the function. Only a function that failed at once has not moved them
// there.
func (t *Thread) checkVarargs(i int, p *Proto) error {
	f := &t.frames[i]
	if f.fn > f.ret {
		if int(f.extra)+int(p.params) != int(f.fn-f.ret)-1 {
			return errPosition
		}
		return nil
	}
	if f.extra != 0 || t.status == suspended || i < len(t.frames)-1 {
		return errPosition
	}
	return nil
}

// checkHostFrame checks the frame of a host function: below the top only those
// that call others in place of themselves.
func (t *Thread) checkHostFrame(i int, b builtin) error {
	f := &t.frames[i]
	if !f.isPlain() {
		return errFrame
	}
	isTop, protected := i == len(t.frames)-1, f.flags&frameProtected != 0
	switch b {
	case builtinPcall, builtinXpcall:
		if f.phase > phaseFailed || !protected && !isTop {
			return errFrame
		}
		return nil
	case builtinPairs, builtinDofile:
		isTop = true // they may be below the top as well
	}
	if protected || f.phase >= phaseFailed || !isTop {
		return errFrame
	}
	return nil
}

// isPlain reports a frame that has no variable arguments below its function,
// closes no variables and replaced no other.
func (f *frame) isPlain() bool {
	return f.fn == f.ret && f.closing == 0 && f.flags&frameTail == 0 && f.extra >= 0
}

// protectedSlot is where a failed pcall or xpcall keeps the error.
func (t *Thread) protectedSlot(f *frame) int32 {
	if t.function(f).host.builtin == builtinXpcall {
		return f.fn + 2
	}
	return f.fn + 1
}

// checkCallback checks a call made by a builtin function.
func (t *Thread) checkCallback(caller, f *frame) error {
	if f.flags&frameCallback == 0 {
		return errFrame
	}
	if caller.phase == phaseFailed { // a handler that closes a variable
		if f.cont != contDiscard || f.ret < t.protectedSlot(caller)+2 {
			return errFrame
		}
		return nil
	}
	want := int32(-1)
	at := caller.fn + 1
	switch t.function(caller).host.builtin {
	case builtinXpcall:
		at++
	case builtinPairs:
		want = 3
	}
	if f.cont != contResults || f.ret != at || f.want != want || int(at)+3 > len(t.stack) {
		return errFrame
	}
	return nil
}

// checkCall checks a call made by an instruction of a Lua function.
func (t *Thread) checkCall(caller, f *frame) error {
	p := t.function(caller).proto
	if f.flags&frameCallback != 0 || caller.pc < 1 {
		return errFrame
	}
	if f.cont != contRepeat && (int(caller.pc) >= len(p.code) || caller.closing != 0) {
		return errFrame
	}
	i := p.code[caller.pc-1]
	if f.cont == contResults {
		return checkResults(caller, f, i)
	}
	if f.ret < caller.top || !i.invokes(f.cont, f.a) {
		return errFrame
	}
	return checkHeldBack(caller, f, i)
}

// checkResults checks that a call instruction takes the results where and as
// many as the frame says.
func checkResults(caller, f *frame, i instruction) error {
	first, want := caller.fn+1+int32(i.a()), int32(-1)
	switch i.op() {
	case opCall:
		want = int32(i.c()) - 1
	case opTailCall:
	case opTForCall:
		first, want = first+4, int32(i.c())
	default:
		return errFrame
	}
	if f.ret != first || f.want != want {
		return errFrame
	}
	return nil
}

// invokes reports whether an instruction calls metamethods whose result is
// used in the given way.
func (i instruction) invokes(cont continuation, a int32) bool {
	op := i.op()
	switch cont {
	case contStore:
		return int(a) == i.a() && (op.reads() || op >= opAdd && op <= opBnot || op == opLen)
	case contCompare:
		return op.compares()
	case contDiscard:
		return op.assigns()
	case contRepeat:
		return op == opClose || op == opReturn
	case contConcat:
		n := int(a >> 8)
		return op == opConcat && int(a&0xff) == i.a() && n >= 1 && n <= i.b()
	}
	return false
}

// compares reports the instructions that compare two values.
func (op opcode) compares() bool { return op >= opEq && op <= opNotGeK }

// reads reports the instructions that read a field of a table.
func (op opcode) reads() bool {
	return op == opGetTabUp || op == opGetTable || op == opGetInt || op == opGetField || op == opSelf
}

// assigns reports the instructions that set a field of a table.
func (op opcode) assigns() bool {
	return op == opSetTabUp || op == opSetTable || op == opSetInt || op == opSetField
}

// checkHeldBack checks the results that a return holds back while variables
// are closed: they lie below the handler that runs.
func checkHeldBack(caller, f *frame, i instruction) error {
	if f.cont != contRepeat {
		return nil
	}
	if i.op() == opClose {
		if caller.closing != 0 {
			return errFrame
		}
		return nil
	}
	n := int(caller.closing) - 1
	if n < 0 || i.d() == 0 || i.b() != 0 && n != i.b()-1 || int(caller.fn)+1+i.a()+n > int(f.ret) {
		return errFrame
	}
	return nil
}

// checkVariables checks the places of open upvalues and of variables to be
// closed.
func (t *Thread) checkVariables() error {
	last := int32(0)
	for _, at := range t.pending {
		if at <= last || !t.holdsVariable(int(at)) {
			return errVariables
		}
		last = at
	}
	for u := t.open; u != nil; u = u.next {
		if !t.holdsVariable(u.at) {
			return errVariables
		}
	}
	return nil
}

// holdsVariable reports whether a stack position is a register of a Lua
// function that its callees leave alone, or belongs to a function that failed
// and whose variables are being closed.
func (t *Thread) holdsVariable(at int) bool {
	if at <= 0 || at >= len(t.stack) {
		return false
	}
	if len(t.frames) == 0 {
		return t.status == failed
	}
	end := len(t.stack)
	for i := len(t.frames) - 1; i >= 0; i-- {
		f := &t.frames[i]
		switch {
		case at >= end:
			return false
		case at < int(f.ret):
			end = int(f.ret)
			continue
		case f.flags&frameHost == 0:
			return at > int(f.fn) && at < int(f.top)
		default:
			return f.phase == phaseFailed && at > int(t.protectedSlot(f))
		}
	}
	return false
}
