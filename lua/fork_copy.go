package lua

import (
	"slices"
	"unsafe"
)

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
