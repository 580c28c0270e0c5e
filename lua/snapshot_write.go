package lua

import "unsafe"

// snapshotWriter writes what a survey found.
type snapshotWriter struct {
	*survey
	encoder
}

func (w *snapshotWriter) body() {
	w.count(len(w.state.libs))
	for _, l := range w.state.libs {
		w.encoder.text(l.name)
	}
	w.count(len(w.strings))
	for _, s := range w.strings {
		w.encoder.text(s)
	}
	w.count(len(w.protos))
	for _, p := range w.protos {
		w.writeProto(p)
	}
	w.count(len(w.functions))
	for _, f := range w.functions {
		w.writeFunctionHead(f)
	}
	w.count(len(w.upvalues))
	w.count(len(w.tables))
	w.count(len(w.userdata))
	w.count(len(w.threads))
	for _, u := range w.userdata {
		w.writeUserdata(u)
	}
	for _, f := range w.functions {
		w.writeFunction(f)
	}
	for _, u := range w.upvalues {
		w.writeUpvalue(u)
	}
	for _, t := range w.tables {
		w.writeTable(t)
	}
	for _, t := range w.threads {
		w.writeThread(t)
	}
	w.writeState()
}

// ref writes the position of a string.
func (w *snapshotWriter) ref(s string) { w.count(w.texts[s]) }

func (w *snapshotWriter) list(values []Value) {
	w.count(len(values))
	for _, v := range values {
		w.value(v)
	}
}

// value writes v. What is left out becomes nil.
func (w *snapshotWriter) value(v Value) {
	switch v.Kind() {
	case KindNil:
		w.tag(tagConstant, constNil)
	case KindBool:
		if v.Truthy() {
			w.tag(tagConstant, constTrue)
		} else {
			w.tag(tagConstant, constFalse)
		}
	case KindInt:
		w.integer(v.int())
	case KindFloat:
		w.float(v.float())
	case KindString:
		w.tag(tagString, uint64(w.texts[v.str().s]))
	default:
		w.object(v)
	}
}

func (w *snapshotWriter) object(v Value) {
	n, ok := w.numbers[v.p]
	switch {
	case v == Null:
		w.tag(tagConstant, constNull)
	case v.p == unsafe.Pointer(deadKey):
		w.tag(tagConstant, constDeadKey)
	case v.p == unsafe.Pointer(w.state.main):
		w.tag(tagConstant, constMain)
	case v.isFunction() && (*header)(v.p).bits&bitShared != 0:
		w.tag(tagHost, uint64(w.texts[v.function().host.name]))
	case !ok:
		w.tag(tagConstant, constNil)
	default:
		w.tag(objectTags[v.Kind()], uint64(n))
	}
}

var objectTags = [...]uint64{
	KindTable: tagTable, KindFunction: tagFunction, KindUserdata: tagUserdata, KindThread: tagThread, kindLight: tagUpvalue,
}

func (w *snapshotWriter) table(t *Table) {
	if t == nil {
		w.value(Nil)
		return
	}
	w.value(t.Value())
}

// metatable writes a metatable or nil.
func (w *snapshotWriter) metatable(t *Table) {
	if t != nil && t == nullMetatable() {
		w.tag(tagConstant, constNullMetatable)
		return
	}
	w.table(t)
}

// nullMetatable is shared by all states. Scripts cannot reach it, so that it
// never changes, and a snapshot cannot give it to them.
func nullMetatable() *Table { return (*Userdata)(Null.p).meta }

func (w *snapshotWriter) writeProto(p *Proto) {
	w.ref(p.source)
	w.int(int64(p.line))
	w.int(int64(p.lastLine))
	w.byte(p.params)
	w.bool(p.vararg)
	w.byte(p.maxStack)
	w.count(len(p.hints))
	w.count(len(p.code))
	for _, i := range p.code {
		w.byte(byte(i.op()))
		w.byte(byte(i.a()))
		w.count(i.b())
		w.count(i.c())
		w.count(i.d())
	}
	w.list(p.constants)
	w.count(len(p.upvalues))
	for _, u := range p.upvalues {
		w.ref(u.name)
		w.bool(u.inStack)
		w.byte(u.index)
		w.byte(byte(u.kind))
	}
	w.count(len(p.protos))
	for _, q := range p.protos {
		w.count(w.numbers[unsafe.Pointer(q)])
	}
	w.count(len(p.lines))
	last := int32(0)
	for _, line := range p.lines {
		w.int(int64(line - last))
		last = line
	}
	w.count(len(p.locals))
	for _, l := range p.locals {
		w.ref(l.name)
		w.int(int64(l.start))
		w.int(int64(l.end))
		w.byte(l.reg)
	}
}

// writeFunctionHead tells what a function is: a closure of a compiled
// function, or an instance of a host function.
func (w *snapshotWriter) writeFunctionHead(f *Function) {
	if f.proto != nil {
		w.count(w.numbers[unsafe.Pointer(f.proto)] << 1)
		return
	}
	w.count(w.texts[f.host.name]<<1 | 1)
}

func (w *snapshotWriter) writeFunction(f *Function) {
	w.uint(uint64(f.id))
	for _, u := range f.upvalues {
		w.count(w.numbers[unsafe.Pointer(u)])
	}
	if f.host != nil {
		w.list(f.bound)
	}
}

func (w *snapshotWriter) writeUpvalue(u *Upvalue) {
	w.uint(uint64(u.id))
	open := u.isOpen() && u.thread != w.state.main
	w.bool(open)
	if !open {
		w.value(*u.v)
	}
}

func (w *snapshotWriter) writeUserdata(u *savedUserdata) {
	w.uint(uint64(u.id))
	w.ref(u.kind)
	w.encoder.text(string(u.data))
	w.metatable(u.meta)
	w.list(u.values)
}

func (w *snapshotWriter) writeTable(t *Table) {
	var flags byte
	if t.IsArray() {
		flags = tableArray
	}
	library, isBorrowed := w.borrowed(t)
	base, isBased := w.bases[t]
	switch {
	case isBorrowed:
		flags |= tableBorrowed
	case isBased:
		library = base
		flags |= tableBased
	}
	w.byte(flags)
	w.uint(uint64(t.id))
	w.metatable(t.meta)
	if flags&(tableBorrowed|tableBased) != 0 {
		w.ref(library)
	}
	if isBorrowed {
		return
	}
	w.count(int(t.acap))
	w.count(int(t.alen))
	w.count(int(t.ecap))
	w.count(int(t.elen))
	for i := range uint64(t.alen) {
		w.value(*t.slot(i))
	}
	var templates []*Table
	if isBased {
		templates = templatesOf(w.state.libs, base)
	}
	for i := range t.elen {
		w.writeEntry(t.entry(i), templates)
	}
	if isBased {
		w.list(w.removedFrom(t, base))
	}
}

func (w *snapshotWriter) writeEntry(e *entry, templates []*Table) {
	k := e.key()
	if _, ok := w.numbers[k.p]; !ok && k.Kind() > KindString && (*header)(k.p).bits&bitShared == 0 &&
		k.p != unsafe.Pointer(w.state.main) {
		// Removed and forgotten, or left out.
		w.tag(tagConstant, constDeadKey)
		w.value(Nil)
		return
	}
	w.value(k)
	if e.v.p != nil && k.isString() && inherited(templates, k) == e.v {
		w.tag(tagConstant, constInherited)
		return
	}
	w.value(e.v)
}

func (w *snapshotWriter) writeThread(t *Thread) {
	w.uint(uint64(t.id))
	w.byte(byte(t.status))
	w.bool(t.overflowed)
	w.value(t.failure)
	w.writeHook(t.hook)
	used := t.used()
	if t.status == dead {
		used = 0
	}
	w.count(min(max(t.top, 0), used))
	w.list(t.stack[:used])
	frames := t.frames
	if !w.hasFunctions(t) {
		frames = nil
	}
	w.count(len(frames))
	for i := range frames {
		w.writeFrame(t, &frames[i])
	}
	w.count(len(t.pending))
	for _, at := range t.pending {
		w.int(int64(at))
	}
	n := 0
	for u := t.open; u != nil; u = u.next {
		n++
	}
	w.count(n)
	for u := t.open; u != nil; u = u.next {
		w.count(w.numbers[unsafe.Pointer(u)])
		w.count(u.at)
	}
}

// hasFunctions reports whether the functions of all frames are saved. Only a
// coroutine that failed inside a host function may lack one; it loses its
// traceback.
func (w *snapshotWriter) hasFunctions(t *Thread) bool {
	for i := range t.frames {
		if w.omitted[t.stack[t.frames[i].fn].p] {
			return false
		}
	}
	return true
}

func (w *snapshotWriter) writeFrame(t *Thread, f *frame) {
	extra := f.extra
	if fn := t.function(f); fn.proto != nil && (!fn.proto.vararg || f.fn == f.ret) {
		extra = 0 // only variable arguments that were put aside matter
	}
	for _, n := range []int32{f.fn, f.ret, f.top, f.pc, f.want, extra, f.a, f.closing} {
		w.int(int64(n))
	}
	w.byte(byte(f.cont))
	w.byte(byte(f.flags))
	w.byte(f.phase)
}

func (w *snapshotWriter) writeHook(h *hook) {
	w.bool(h != nil)
	if h == nil {
		return
	}
	w.value(h.fn)
	w.bool(h.call)
	w.bool(h.ret)
	w.bool(h.line)
	w.count(h.count)
	w.count(max(h.left, 0))
	w.count(max(h.lastPC, 0))
}

func (w *snapshotWriter) writeState() {
	s := w.state
	w.table(s.globals)
	w.table(s.loaded)
	w.table(s.preload)
	w.table(s.registry)
	for _, m := range s.metas {
		w.table(m)
	}
	w.value(s.nextFunction)
	w.list(s.gc.finalizable)
	w.list(s.gc.pending)
	w.uint(uint64(s.main.id))
	w.writeHook(s.main.hook)
	w.uint(uint64(s.lastID))
	for _, n := range s.random {
		w.word(n)
	}
	w.int(s.gcSettings.pause)
	w.int(s.gcSettings.stepmul)
	w.bool(s.gcSettings.generational)
	w.bool(s.gc.usesWeak)
	w.bool(s.gc.stopped)
	w.bool(s.warnings.on)
	w.encoder.text(s.warnings.partial.String())
}
