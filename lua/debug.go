package lua

import (
	"fmt"
	"strings"
)

// idSize bounds chunk names in messages, with the terminator C counts.
const idSize = 60

// chunkID returns a chunk name as messages show it.
func chunkID(name string) string {
	if name == "" {
		return `[string ""]`
	}
	switch name[0] {
	case '=':
		return name[1:min(len(name), idSize)]
	case '@':
		if name = name[1:]; len(name) >= idSize {
			return "..." + name[len(name)-(idSize-4):]
		}
		return name
	}
	line, _, more := strings.Cut(name, "\n")
	room := idSize - len(`[string "..."]`) - 1
	if !more && len(line) <= room+len("...")-3 {
		return `[string "` + line + `"]`
	}
	return `[string "` + line[:min(len(line), room)] + `..."]`
}

// where returns "chunk:line: " of the function at a level: 0 is the running
// one, 1 the one that called it.
func (s *State) where(t *Thread, level int) string {
	i := len(t.frames) - 1 - level
	if i < 0 {
		return ""
	}
	f := &t.frames[i]
	if f.flags&frameHost != 0 {
		return ""
	}
	p := t.function(f).proto
	return chunkID(p.source) + ":" + formatInt(int64(p.lineAt(int(f.pc)-1))) + ": "
}

// lineAt returns the source line of an instruction, or -1.
func (p *Proto) lineAt(pc int) int {
	if pc < 0 || pc >= len(p.lines) {
		return -1
	}
	return int(p.lines[pc])
}

// runtimeError returns an error raised by the running function itself; its
// position is given if it is a Lua function.
func (s *State) runtimeError(format string, args ...any) error {
	if s == nil {
		return keyError("")
	}
	return &Error{Value: String(s.where(s.cur, 0) + fmt.Sprintf(format, args...))}
}

// hostError is runtimeError with the position of the caller.
func (s *State) hostError(format string, args ...any) error {
	return &Error{Value: String(s.where(s.cur, 1) + fmt.Sprintf(format, args...))}
}

// typeError reports an operation a value does not have, naming the variable
// if the running instruction got it from one.
func (s *State) typeError(what string, v Value) error {
	return s.runtimeError("attempt to %s a %s value%s", what, s.typeName(v), s.variableInfo(v))
}

// typeErrorAt is typeError for a value at a known stack position.
func (s *State) typeErrorAt(what string, v Value, at int) error {
	t := s.cur
	info := ""
	if len(t.frames) > 0 {
		if f := t.frame(); f.flags&frameHost == 0 {
			p := t.function(f).proto
			name, kind := "", ""
			if what == "call" {
				name, kind = p.calledName(int(f.pc) - 1)
			}
			if kind == "" && at > int(f.fn) {
				name, kind = p.registerName(int(f.pc)-1, at-int(f.fn)-1)
			}
			info = describe(name, kind)
		}
	}
	return s.runtimeError("attempt to %s a %s value%s", what, s.typeName(v), info)
}

func (s *State) indexError(v, k Value, direct bool) error {
	if direct {
		return s.typeError("index", v)
	}
	return s.runtimeError("attempt to index a %s value", s.typeName(v))
}

func describe(name, kind string) string {
	if kind == "" {
		return ""
	}
	return fmt.Sprintf(" (%s '%s')", kind, name)
}

// variableInfo names the variable, field or constant the running instruction
// got the value from, as " (local 'x')", or returns "".
func (s *State) variableInfo(v Value) string {
	t := s.cur
	if len(t.frames) == 0 {
		return ""
	}
	f := t.frame()
	if f.flags&frameHost != 0 {
		return ""
	}
	fn := t.function(f)
	pc := int(f.pc) - 1
	i := fn.proto.code[pc]
	switch i.op() {
	case opGetTabUp:
		return describe(fn.proto.upvalues[i.b()].name, "upvalue")
	case opSetTabUp:
		return describe(fn.proto.upvalues[i.a()].name, "upvalue")
	}
	for _, r := range i.operands() {
		if at := int(f.fn) + 1 + r; at < len(t.stack) && t.stack[at] == v {
			return describe(fn.proto.registerName(pc, r))
		}
	}
	return ""
}

// operands returns the registers an instruction reads that may be at fault.
func (i instruction) operands() []int {
	switch op := i.op(); {
	case op == opGetTable, op == opGetField, op == opGetInt, op == opSelf:
		return []int{i.b()}
	case op == opSetTable, op == opSetField, op == opSetInt:
		return []int{i.a()}
	case op >= opAdd && op <= opShr:
		return []int{i.b(), i.c()}
	case op >= opAddK && op <= opShrK, op == opUnm, op == opBnot, op == opLen:
		return []int{i.b()}
	}
	return nil
}

// local returns the name of the n-th (from 1) variable alive at pc.
func (p *Proto) local(n, pc int) (name string, reg int, ok bool) {
	for i := range p.locals {
		l := &p.locals[i]
		if int(l.start) > pc {
			break
		}
		if pc < int(l.end) {
			if n--; n == 0 {
				return l.name, int(l.reg), true
			}
		}
	}
	return "", 0, false
}

// localIn returns the name of the variable in a register at pc.
func (p *Proto) localIn(reg, pc int) (string, bool) {
	for i := len(p.locals) - 1; i >= 0; i-- {
		l := &p.locals[i]
		if int(l.reg) == reg && int(l.start) <= pc && pc < int(l.end) {
			return l.name, true
		}
	}
	return "", false
}

// localName names the variable at a stack position of the running function.
func (t *Thread) localName(at int) string {
	f := t.frame()
	name, ok := t.function(f).proto.localIn(at-int(f.fn)-1, int(f.pc)-1)
	if !ok {
		return "?"
	}
	return name
}

// setter returns the instruction before pc that last set a register, or -1
// when that depends on the way taken.
func (p *Proto) setter(pc, reg int) int {
	set, target := -1, 0
	for at := 0; at < pc; at++ {
		i := p.code[at]
		if op := i.op(); op >= opJump && op <= opTestNotSet {
			if dest := at + 1 + i.j(); dest <= pc && dest > target {
				target = dest
			}
		}
		if i.sets(reg) {
			set = at
			if at < target {
				set = -1
			}
		}
	}
	return set
}

// sets reports whether an instruction changes a register.
func (i instruction) sets(reg int) bool {
	switch i.op() {
	case opLoadNil:
		return i.a() <= reg && reg <= i.a()+i.b()
	case opTForCall:
		return reg >= i.a()+4
	case opCall, opTailCall, opVararg, opConcat:
		return reg >= i.a()
	case opSelf:
		return reg == i.a() || reg == i.a()+1
	}
	return i.setsA() && i.a() == reg
}

// setsA reports whether an instruction changes its register A.
func (i instruction) setsA() bool {
	if op := i.op(); op >= opJump && op < opTestSet {
		return false
	}
	switch i.op() {
	case opSetUpval, opSetTabUp, opSetTable, opSetInt, opSetField, opReturn, opReturn0, opReturn1,
		opTForPrep, opSetList, opVarargPrep, opClose, opToClose, opTrap:
		return false
	}
	return true
}

// registerName tells where the value of a register at pc came from: a name
// and what it names, or two empty strings.
func (p *Proto) registerName(pc, reg int) (name, kind string) {
	if name, ok := p.localIn(reg, pc); ok {
		return name, "local"
	}
	at := p.setter(pc, reg)
	if at < 0 {
		return "", ""
	}
	i := p.code[at]
	switch i.op() {
	case opMove:
		if i.b() < i.a() {
			return p.registerName(at, i.b())
		}
	case opGetTabUp:
		return p.constants[i.c()].String(), p.fieldKind(p.upvalues[i.b()].name)
	case opGetField:
		env, _ := p.localIn(i.b(), at)
		return p.constants[i.c()].String(), p.fieldKind(env)
	case opGetTable:
		if key, ok := p.constantKey(at, i.c()); ok {
			return key, "field"
		}
		return "?", "field"
	case opGetInt:
		return "integer index", "field"
	case opGetUpval:
		return p.upvalues[i.b()].name, "upvalue"
	case opLoadK:
		if k := p.constants[i.j()]; k.isString() {
			return k.String(), "constant"
		}
	case opSelf:
		return p.constants[i.c()].String(), "method"
	}
	return "", ""
}

// constantKey returns the string constant a register holds at pc.
func (p *Proto) constantKey(pc, reg int) (string, bool) {
	for {
		if _, isLocal := p.localIn(reg, pc); isLocal {
			return "", false
		}
		at := p.setter(pc, reg)
		if at < 0 {
			return "", false
		}
		switch i := p.code[at]; {
		case i.op() == opMove && i.b() < i.a():
			pc, reg = at, i.b()
		case i.op() == opLoadK && p.constants[i.j()].isString():
			return p.constants[i.j()].String(), true
		default:
			return "", false
		}
	}
}

func (p *Proto) fieldKind(table string) string {
	if table == "_ENV" {
		return "global"
	}
	return "field"
}

// calledName tells what the instruction at pc calls.
func (p *Proto) calledName(pc int) (name, kind string) {
	if pc < 0 {
		return "", ""
	}
	i := p.code[pc]
	var ev event
	switch op := i.op(); {
	case op == opCall || op == opTailCall:
		return p.registerName(pc, i.a())
	case op == opTForCall:
		return "for iterator", "for iterator"
	case op == opGetTabUp, op == opGetTable, op == opGetInt, op == opGetField, op == opSelf:
		ev = evIndex
	case op == opSetTabUp, op == opSetTable, op == opSetInt, op == opSetField:
		ev = evNewIndex
	case op >= opAdd && op <= opShr:
		ev = evAdd + event(op-opAdd)
	case op >= opAddK && op <= opShrK:
		ev = evAdd + event(op-opAddK)
	case op == opUnm:
		ev = evUnm
	case op == opBnot:
		ev = evBnot
	case op == opLen:
		ev = evLen
	case op == opConcat:
		ev = evConcat
	case op == opEq || op == opNe:
		ev = evEq
	case op == opLt, op == opNotLt, op == opLtK, op == opNotLtK, op == opGtK, op == opNotGtK:
		ev = evLt
	case op == opLe, op == opNotLe, op == opLeK, op == opNotLeK, op == opGeK, op == opNotGeK:
		ev = evLe
	case op == opClose, op == opReturn:
		ev = evClose
	default:
		return "", ""
	}
	return eventStrings[ev].s[2:], "metamethod"
}

// frameName tells by what name the function of frame i of a thread was
// called.
func (s *State) frameName(t *Thread, i int) (name, kind string) {
	f := &t.frames[i]
	switch {
	case f.flags&frameHook != 0:
		return "?", "hook"
	case f.flags&frameFinalizer != 0:
		return "__gc", "metamethod"
	case f.flags&(frameTail|frameFresh|frameCallback) != 0, i == 0:
		return "", ""
	}
	caller := &t.frames[i-1]
	if caller.flags&frameHost != 0 {
		return "", ""
	}
	return t.function(caller).proto.calledName(int(caller.pc) - 1)
}

// callerName is frameName of the running function.
func (s *State) callerName(t *Thread) (name, kind string) {
	return s.frameName(t, len(t.frames)-1)
}

// globalName finds a function among the loaded modules, as "print" or
// "string.format", or returns "".
func (s *State) globalName(f *Function) string {
	for k, v := range s.loaded.All() {
		if v == f.Value() {
			return k.String()
		}
	}
	for k, v := range s.loaded.All() {
		t, ok := v.AsTable()
		if !ok {
			continue
		}
		for name, x := range t.All() {
			if x == f.Value() && name.isString() {
				if k.String() == "_G" {
					return name.String()
				}
				return k.String() + "." + name.String()
			}
		}
	}
	return ""
}

// Long tracebacks show their first and last levels.
const (
	tracebackFirst = 10
	tracebackLast  = 11
)

// Traceback describes the calls of a thread from a level on; level 0 is the
// running function. Msg, if not empty, comes first.
func (s *State) Traceback(t *Thread, msg string, level int) string {
	var b strings.Builder
	if msg != "" {
		b.WriteString(msg)
		b.WriteByte('\n')
	}
	b.WriteString("stack traceback:")
	n := len(t.frames)
	for l := level; l < n; l++ {
		if n-level > tracebackFirst+tracebackLast && l == level+tracebackFirst {
			skip := n - level - tracebackFirst - tracebackLast
			fmt.Fprintf(&b, "\n\t...\t(skipping %d levels)", skip)
			l += skip - 1
			continue
		}
		s.writeLevel(&b, t, n-1-l)
	}
	if t == s.main && n > 0 && t.frames[0].flags&frameFresh != 0 && level < n {
		b.WriteString("\n\t[C]: in ?")
	}
	return b.String()
}

// stoppedAt is the line of the instruction before pc, which runs. A loop that a
// budget stopped at its first instruction has none before it that has a line.
func stoppedAt(p *Proto, pc int) int {
	if line := p.lineAt(pc - 1); line > 0 {
		return line
	}
	return p.lineAt(pc)
}

func (s *State) writeLevel(b *strings.Builder, t *Thread, i int) {
	f := &t.frames[i]
	fn := t.function(f)
	b.WriteString("\n\t")
	if fn.proto == nil {
		b.WriteString("[C]: in ")
	} else {
		b.WriteString(chunkID(fn.proto.source))
		if line := stoppedAt(fn.proto, int(f.pc)); line > 0 {
			fmt.Fprintf(b, ":%d", line)
		}
		b.WriteString(": in ")
	}
	name, kind := s.frameName(t, i)
	switch global := s.globalName(fn); {
	case global != "":
		fmt.Fprintf(b, "function '%s'", global)
	case kind != "":
		fmt.Fprintf(b, "%s '%s'", kind, name)
	case fn.proto != nil && fn.proto.line == 0:
		b.WriteString("main chunk")
	case fn.proto != nil:
		fmt.Fprintf(b, "function <%s:%d>", chunkID(fn.proto.source), fn.proto.line)
	default:
		b.WriteString("?")
	}
	if f.flags&frameTail != 0 {
		b.WriteString("\n\t(...tail calls...)")
	}
}
