package lua

import (
	"context"
	"errors"
	"fmt"
)

// Compile translates a chunk. The result may be loaded into any state. The
// chunk name begins with "@" for a file and "=" for a name to be shown as it
// is; otherwise it is taken for the source itself.
func (s *State) Compile(source, chunkname string) (*Proto, error) {
	if err := s.step(len(source) / 16); err != nil {
		return nil, err
	}
	defer s.release(s.account.held)
	fn, err := s.parse(source, chunkname)
	if err != nil {
		return nil, s.compileError(err)
	}
	c := &compiler{state: s, chunk: chunkname}
	p, err := c.function(fn)
	if err != nil {
		return nil, s.compileError(err)
	}
	return p, s.alloc(p.size())
}

// CompileContext is Compile with a context, which ends it, also while it waits for memory.
//
//nolint:contextcheck // what is called finds ctx in the account
func (s *State) CompileContext(ctx context.Context, source, chunkname string) (*Proto, error) {
	a := &s.account
	outer, outerDone := a.ctx, a.done
	a.ctx, a.done = ctx, ctx.Done()
	defer func() { a.ctx, a.done = outer, outerDone }()
	return s.Compile(source, chunkname)
}

// compileError turns a syntax error into a Lua error.
func (s *State) compileError(err error) error {
	if e := syntaxError(""); errors.As(err, &e) {
		return &Error{Value: String(string(e))}
	}
	return err
}

// compiler generates the code of one function.
type compiler struct {
	state  *State
	chunk  string
	parent *compiler
	fn     *function
	p      *Proto
	consts map[Value]int
	block  *blockState
	free   int // first free register
	line   int // for the instructions being emitted
	hints  int
	err    error // the first limit exceeded
}

// blockState is a block being compiled.
type blockState struct {
	parent *blockState
	block  *block
	vars   []*variable
	debug  []int // of vars: positions in Proto.locals
	base   int   // first register of the block's variables
	// close is set when leaving the block has variables to close.
	close bool
	// insideTBC is set when a return must stay in this function to close
	// variables, so that it cannot be a tail call.
	insideTBC bool
	loop      bool
	breaks    []int
	labels    map[string]*labelState
}

// labelState is a label of a block: known from the start, placed later.
type labelState struct {
	placed bool
	pc     int
	base   int // registers in use at the label
	line   int
	gotos  []pendingGoto
	last   bool
}

// pendingGoto is a jump to a label further down.
type pendingGoto struct {
	pc   int
	vars int // variables of the label's block in scope at the jump
	line int
}

const maxRegisters = 250

// function compiles fn and returns its code.
func (c *compiler) function(fn *function) (*Proto, error) {
	c.fn = fn
	c.consts = map[Value]int{}
	c.p = &Proto{
		source: c.chunk, line: int32(fn.line), lastLine: int32(fn.endLine),
		params: uint8(len(fn.params)), vararg: fn.vararg, maxStack: 2,
	}
	c.line = fn.line
	c.enter(fn.body, false)
	for _, v := range fn.params {
		c.free++
		c.activate(v)
	}
	if fn.vararg {
		c.emit(abc(opVarargPrep, len(fn.params), 0, 0))
	}
	c.statements(fn.body)
	c.line = fn.endLine
	c.emitReturn(0, 1)
	c.leaveVars()
	c.p.hints = make([]uint32, c.hints+1)
	c.upvalueDescs()
	return c.p, c.err
}

func (c *compiler) upvalueDescs() {
	for _, ref := range c.fn.upvalues {
		d := upvalueDesc{name: ref.name, kind: ref.kind}
		if ref.local != nil {
			d.inStack, d.index = true, uint8(ref.local.reg)
		} else {
			d.index = uint8(ref.outer)
		}
		c.p.upvalues = append(c.p.upvalues, d)
	}
}

// fail keeps the first error.
func (c *compiler) fail(line int, format string, args ...any) {
	if c.err == nil {
		c.err = syntaxError(fmt.Sprintf("%s:%d: %s", chunkID(c.chunk), line, fmt.Sprintf(format, args...)))
	}
}

func (c *compiler) pc() int { return len(c.p.code) }

func (c *compiler) emit(i instruction) int {
	c.p.code = append(c.p.code, i)
	c.p.lines = append(c.p.lines, int32(c.line))
	return len(c.p.code) - 1
}

// hint returns a new slot of Proto.hints, 0 when there are too many.
func (c *compiler) hint() int {
	if c.hints < 0xfffe {
		c.hints++
		return c.hints
	}
	return 0
}

func withHint(i instruction, hint int) instruction { return i | instruction(hint)<<48 }

// reserve takes n registers and returns the first.
func (c *compiler) reserve(n int) int {
	r := c.free
	c.free += n
	if c.free > maxRegisters {
		c.fail(c.line, "function or expression needs too many registers")
		c.free = maxRegisters
		return r % maxRegisters
	}
	c.touch(c.free)
	return r
}

// touch notes that registers below n are used.
func (c *compiler) touch(n int) {
	if n+1 > int(c.p.maxStack) {
		c.p.maxStack = uint8(min(n+1, 255))
	}
}

// constant returns the index of a constant.
func (c *compiler) constant(v Value) int {
	if i, ok := c.consts[v]; ok {
		return i
	}
	i := len(c.p.constants)
	c.p.constants = append(c.p.constants, v)
	c.consts[v] = i
	return i
}

// jump emits a jump to be patched.
func (c *compiler) jump() int { return c.emit(abj(opJump, 0, 0, 0)) }

// patch makes the jump at pc go to target.
func (c *compiler) patch(pc, target int) {
	i := c.p.code[pc]
	c.p.code[pc] = i&0xffffffff | instruction(uint32(int32(target-pc-1)))<<32
}

func (c *compiler) patchHere(jumps []int) {
	for _, pc := range jumps {
		c.patch(pc, c.pc())
	}
}

// enter opens the scope of a block.
func (c *compiler) enter(b *block, loop bool) *blockState {
	bs := &blockState{parent: c.block, block: b, base: c.free, close: b.close, loop: loop}
	if c.block != nil {
		bs.insideTBC = c.block.insideTBC
	}
	for _, s := range b.stats {
		if l, ok := s.(*labelStat); ok {
			if bs.labels == nil {
				bs.labels = map[string]*labelState{}
			}
			if bs.labels[l.name] == nil {
				bs.labels[l.name] = &labelState{last: l.last}
			}
		}
	}
	c.block = bs
	return bs
}

// leave closes the scope of a block and the variables that need it.
func (c *compiler) leave() {
	bs := c.block
	c.leaveVars()
	if bs.close {
		c.emit(abc(opClose, bs.base, 0, 0))
	}
	c.free = bs.base
	c.block = bs.parent
}

// leaveVars ends the life of the block's variables.
func (c *compiler) leaveVars() {
	for i := range c.block.debug {
		c.p.locals[c.block.debug[i]].end = int32(c.pc())
	}
}

// activate makes v alive in the first register of the block that is not a
// variable yet.
func (c *compiler) activate(v *variable) {
	bs := c.block
	v.reg = bs.base
	for _, o := range bs.vars {
		if o.kind != varConstant {
			v.reg++
		}
	}
	if v.kind == varConstant {
		bs.vars = append(bs.vars, v)
		return
	}
	c.touch(v.reg + 1)
	bs.vars = append(bs.vars, v)
	bs.debug = append(bs.debug, len(c.p.locals))
	c.p.locals = append(c.p.locals, localVar{name: v.name, start: int32(c.pc()), reg: uint8(v.reg)})
}

// emitReturn returns n-1 values from register first on; n = 0 returns all up
// to the top.
func (c *compiler) emitReturn(first, n int) {
	switch {
	case c.fn.close:
		c.emit(withHint(abc(opReturn, first, n, 0), 1))
	case n == 1:
		c.emit(abc(opReturn0, first, 1, 0))
	case n == 2:
		c.emit(abc(opReturn1, first, 2, 0))
	default:
		c.emit(abc(opReturn, first, n, 0))
	}
}

// label places a label.
func (c *compiler) label(s *labelStat) {
	for b := c.block; b != nil; b = b.parent {
		if l := b.labels[s.name]; l != nil && l.placed {
			c.fail(s.line, "label '%s' already defined on line %d", s.name, l.line)
			return
		}
	}
	bs := c.block
	l := bs.labels[s.name]
	l.placed, l.pc, l.line, l.base = true, c.pc(), s.line, c.free
	if s.last {
		l.base = bs.base
	}
	for _, g := range l.gotos {
		if g.vars < len(bs.vars) && !s.last {
			c.fail(g.line, "<goto %s> at line %d jumps into the scope of local '%s'", s.name, g.line, bs.vars[g.vars].name)
		}
		c.patch(g.pc, l.pc)
	}
}

// gotoStatement jumps to a label of the function.
func (c *compiler) gotoStatement(s *gotoStat) {
	if s.isBreak {
		c.breakStatement(s)
		return
	}
	closes := false
	for b := c.block; b != nil; b = b.parent {
		l := b.labels[s.label]
		if l == nil {
			closes = closes || b.close
			continue
		}
		if l.placed {
			if closes || b.close {
				c.emit(abc(opClose, l.base, 0, 0))
			}
			c.patch(c.jump(), l.pc)
			return
		}
		if closes {
			c.emit(abc(opClose, b.end(), 0, 0))
		}
		l.gotos = append(l.gotos, pendingGoto{c.jump(), len(b.vars), s.line})
		return
	}
	c.fail(s.line, "no visible label '%s' for <goto> at line %d", s.label, s.line)
}

// end is the register behind the variables that the block has so far.
func (b *blockState) end() int {
	level := b.base
	for _, v := range b.vars {
		if v.kind != varConstant {
			level++
		}
	}
	return level
}

func (c *compiler) breakStatement(s *gotoStat) {
	closes := false
	for b := c.block; b != nil; b = b.parent {
		closes = closes || b.close
		if b.loop {
			if closes {
				c.emit(abc(opClose, b.base, 0, 0))
			}
			b.breaks = append(b.breaks, c.jump())
			return
		}
	}
	c.fail(s.line, "break outside loop at line %d", s.line)
}
