package lua

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unsafe"
)

// Fork returns a deep copy of a state in which no call is running: globals,
// tables, closures with the variables they share, suspended coroutines, the
// random generator, and the numbers that tostring shows. Code and untouched
// library tables are shared, since they never change. Budget and usage go on
// in the copy where they stand in the original. The two states are independent
// and may run on different goroutines.
//
// The host's part is shared: Options with their readers and writers, and what
// host functions captured in Go (values given with [Function.Bind] are
// copied). The Data of a userdata is copied if it implements [Forker] or is a
// plain nil, boolean, number or string; any other makes Fork fail with a
// [TransferError], because sharing it would tie the states together.
//
// It takes time proportional to the size of the state.
func (s *State) Fork() (*State, error) {
	if !s.atRest() {
		return nil, fmt.Errorf("forking a state: %w", errBusy)
	}
	f := &forker{from: s, to: s.emptyCopy(), seen: make(map[unsafe.Pointer]unsafe.Pointer, 64)}
	f.seen[unsafe.Pointer(s.main)] = unsafe.Pointer(f.to.main)
	f.roots()
	f.run()
	if f.failure == nil {
		f.store()
	}
	if f.failure != nil {
		return nil, fmt.Errorf("forking a state: %w", f.failure)
	}
	return f.to, nil
}

// emptyCopy returns a state like s without any of its objects.
func (s *State) emptyCopy() *State {
	c := &State{
		libs: slices.Clip(s.libs), strings: maps.Clone(s.strings), account: s.account, lastID: s.lastID, opts: s.opts,
		gcSettings: s.gcSettings, random: s.random,
	}
	c.account.ctx, c.account.done = context.Background(), nil
	c.main = newThread(c)
	c.main.id, c.main.status = s.main.id, running
	c.cur = c.main
	c.warnings.on = s.warnings.on
	c.warnings.partial.WriteString(s.warnings.partial.String())
	c.gc = collector{usesWeak: s.gc.usesWeak, stopped: s.gc.stopped, generation: s.gc.generation}
	return c
}

// forker copies the objects of one state into another. Copies are made when
// an object is first met, still referring to the originals, and completed one
// after the other, so that neither cycles nor depth matter.
type forker struct {
	from, to *State
	seen     map[unsafe.Pointer]unsafe.Pointer // copies by their originals
	// work are the copies to be completed, with their originals.
	work []unfinished
	// removed are entries without value whose keys are objects: they keep the
	// key only if something else does.
	removed []*entry
	// reindex are the tables whose index must follow the new places of keys.
	reindex []*Table
	strings []Str // space for the next copies of strings
	failure error
}

type unfinished struct{ original, copied Value }

// deadKey stands for a removed key that no value refers to any more.
var deadKey = &Upvalue{header: header{kind: kindLight, bits: bitShared}}

// roots copies what the state itself refers to.
func (f *forker) roots() {
	s, c := f.from, f.to
	c.globals, c.loaded = f.table(s.globals), f.table(s.loaded)
	c.preload, c.registry = f.table(s.preload), f.table(s.registry)
	for i, m := range s.metas {
		c.metas[i] = f.table(m)
	}
	c.nextFunction = f.value(s.nextFunction)
	c.gc.finalizable = f.values(s.gc.finalizable)
	c.gc.pending = f.values(s.gc.pending)
	c.main.setHook(f.hook(s.main.hook))
}

// run completes copies until there are none left to complete.
func (f *forker) run() {
	for len(f.work) > 0 && f.failure == nil {
		p := f.work[len(f.work)-1]
		f.work = f.work[:len(f.work)-1]
		switch p.copied.Kind() {
		case KindTable:
			f.completeTable(p.copied.table())
		case KindFunction:
			f.completeFunction(p.original.function(), p.copied.function())
		case KindUserdata:
			f.completeUserdata(p.original, (*Userdata)(p.copied.p))
		case KindThread:
			f.completeThread((*Thread)(p.original.p), (*Thread)(p.copied.p))
		}
	}
	for _, e := range f.removed {
		if q := f.seen[e.k.p]; q != nil {
			e.k.p = q
		} else {
			e.k = deadKey.identity()
		}
	}
	for _, t := range f.reindex {
		for i := range t.elen {
			if k := t.entry(i).k; k.p != unsafe.Pointer(deadKey) {
				t.link(k, i)
			}
		}
	}
}

// store carries the values of libraries that can be.
func (f *forker) store() {
	for key, value := range f.from.store {
		if v, ok := value.(Forker); ok {
			c, err := v.Fork()
			if err != nil {
				f.failure = err
				return
			}
			f.to.Store(key, c)
		}
	}
}

// value returns the copy of v.
func (f *forker) value(v Value) Value {
	if v.p == nil {
		return v
	}
	o := (*header)(v.p)
	if o.kind < KindString || o.bits&bitShared != 0 {
		return v
	}
	// Payloads stay: loops keep a note with their iterator, entries the hash
	// of their key.
	return Value{f.object(v), v.n}
}

func (f *forker) values(list []Value) []Value {
	if list == nil {
		return nil
	}
	c := make([]Value, len(list))
	for i, v := range list {
		c[i] = f.value(v)
	}
	return c
}

func (f *forker) table(t *Table) *Table {
	if t == nil {
		return nil
	}
	return f.value(t.Value()).table()
}

func (f *forker) hook(h *hook) *hook {
	if h == nil {
		return nil
	}
	c := *h
	c.fn = f.value(h.fn)
	return &c
}

// object returns the copy of an object, beginning it if need be.
func (f *forker) object(v Value) unsafe.Pointer {
	if c, ok := f.seen[v.p]; ok {
		return c
	}
	c := f.begin(v)
	f.seen[v.p] = c
	return c
}

// begin makes the copy of an object met for the first time.
func (f *forker) begin(v Value) unsafe.Pointer {
	var c unsafe.Pointer
	switch v.Kind() {
	case KindString:
		return unsafe.Pointer(f.str(v.str()))
	case kindLight:
		return unsafe.Pointer(f.newUpvalue((*Upvalue)(v.p)))
	case KindTable:
		t := *v.table()
		t.mark = 0
		c = unsafe.Pointer(&t)
	case KindFunction:
		c = unsafe.Pointer(copyFunction(v.function()))
	case KindUserdata:
		u := *(*Userdata)(v.p)
		u.mark = 0
		c = unsafe.Pointer(&u)
	case KindThread:
		t := newThread(f.to)
		t.id = (*Thread)(v.p).id
		c = unsafe.Pointer(t)
	}
	f.work = append(f.work, unfinished{v, Value{c, 0}})
	return c
}

// str copies the object; the bytes never change and are shared.
func (f *forker) str(s *Str) *Str {
	if len(f.strings) == 0 {
		f.strings = make([]Str, 64)
	}
	c := &f.strings[0]
	f.strings = f.strings[1:]
	*c = Str{header: header{kind: KindString}, hash: s.hash, s: s.s}
	return c
}

func copyFunction(f *Function) *Function {
	var c *Function
	if f.proto != nil {
		c = newClosure(f.proto)
	} else {
		c = &Function{header: header{kind: KindFunction}, host: f.host, bound: slices.Clone(f.bound)}
	}
	c.id, c.bits = f.id, f.bits
	return c
}

func (f *forker) completeFunction(from, to *Function) {
	for i, u := range from.upvalues {
		to.upvalues[i] = (*Upvalue)(f.object(u.identity()))
	}
	for i, v := range to.bound {
		to.bound[i] = f.value(v)
	}
}

// newUpvalue copies a variable. An open one is linked when its thread is
// completed; at rest no variable of the main thread is needed open.
func (f *forker) newUpvalue(u *Upvalue) *Upvalue {
	if u.isOpen() && u.thread != f.from.main {
		f.value(u.thread.Value())
		return &Upvalue{header: header{kind: kindLight}, id: u.id}
	}
	c := newUpvalue(f.value(*u.v))
	c.id = u.id
	return c
}

func (f *forker) completeUserdata(from Value, u *Userdata) {
	data, err := forkData(u.Data, f.to)
	if err != nil {
		f.failure = f.from.stuckAt(from, err.Error())
		return
	}
	u.Data = data
	u.meta = f.table(u.meta)
	u.values = f.values(u.values)
}

// completeTable gives the copy of a table, which still shows the content of
// the original, its own.
func (f *forker) completeTable(t *Table) {
	t.meta = f.table(t.meta)
	if t.bits&bitCopyOnWrite != 0 {
		return
	}
	if t.acap > 0 {
		from := unsafe.Slice((*Value)(t.arr), t.alen)
		t.makeArray(t.acap)
		to := unsafe.Slice((*Value)(t.arr), t.alen)
		for i, v := range from {
			to[i] = f.value(v)
		}
	}
	if t.ecap > 0 {
		f.completeEntries(t)
	}
}

func (f *forker) completeEntries(t *Table) {
	from := unsafe.Slice((*entry)(t.ents), t.elen)
	index := t.index
	t.makeEntries(t.ecap)
	to := unsafe.Slice((*entry)(t.ents), t.elen)
	moved := false // whether a key sits elsewhere in the index than before
	for i := range from {
		k, v := from[i].k, from[i].v
		isObject := (*header)(k.p).kind > KindString
		if isObject && v.p == nil {
			to[i].k = k
			f.removed = append(f.removed, &to[i])
			moved = true
			continue
		}
		moved = moved || isObject
		to[i] = entry{f.value(k), f.value(v)}
	}
	switch {
	case t.index == nil:
	case moved:
		f.reindex = append(f.reindex, t)
	default:
		copy(unsafe.Slice((*uint32)(t.index), 2*t.ecap), unsafe.Slice((*uint32)(index), 2*t.ecap))
	}
}

func (f *forker) completeThread(from, to *Thread) {
	to.status, to.top, to.resumes, to.overflowed = from.status, from.top, from.resumes, from.overflowed
	to.stack = make([]Value, len(from.stack))
	used := from.used()
	for i, v := range from.stack[:used] {
		to.stack[i] = f.value(v)
	}
	to.frames = slices.Clone(from.frames)
	to.pending = slices.Clone(from.pending)
	to.failure = f.value(from.failure)
	to.setHook(f.hook(from.hook))
	link := &to.open
	for u := from.open; u != nil; u = u.next {
		c := (*Upvalue)(f.object(u.identity()))
		c.v, c.thread, c.at = &to.stack[u.at], to, u.at
		*link, link = c, &c.next
	}
}

// used returns how much of the stack of a thread that does not run is in use;
// what lies above is left over from calls that have ended.
func (t *Thread) used() int {
	n := 1
	for i := range t.frames {
		n = max(n, int(t.frames[i].top))
	}
	for _, at := range t.pending {
		n = max(n, int(at)+1)
	}
	if t.open != nil {
		n = max(n, t.open.at+1)
	}
	return min(n, len(t.stack))
}
