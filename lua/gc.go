package lua

import "unsafe"

// minCollect is the amount of memory below which no walk starts by itself.
const minCollect = 1 << 20

// collector is the part of a state that walks the live graph. Go's own
// collector frees memory; the walk only measures, clears weak tables and finds
// objects to finalize.
type collector struct {
	epoch uint8 // mark of objects reached by the current walk
	gray  []Value
	// weak are the weak tables the walk met.
	weak []*Table
	// ephemerons are those with weak keys only, whose values count once their
	// keys are reached.
	ephemerons []*Table
	// finalizable are objects with __gc in the order they were marked for it;
	// pending those found unreachable, whose finalizers wait to run.
	finalizable []Value
	pending     []Value
	size        int64
	usesWeak    bool
	stopped     bool
	finalizing  bool
	generation  bool
	running     bool
}

// collects reports whether walks should happen without being asked for.
func (s *State) collects() bool {
	return !s.gc.stopped && (s.gc.usesWeak || len(s.gc.finalizable) > 0)
}

// collect walks everything reachable, clears weak tables, finds what to
// finalize, and returns the bytes reachable.
func (s *State) collect() int64 {
	g := &s.gc
	if g.running {
		return s.account.memory
	}
	g.running = true
	g.epoch++
	if g.epoch == 0 {
		g.epoch = 1
	}
	g.size, g.weak, g.ephemerons, g.gray = 0, g.weak[:0], g.ephemerons[:0], g.gray[:0]
	s.markRoots()
	s.propagate()
	s.converge()
	s.clearWeakValues()
	s.separate()
	s.propagate()
	s.converge()
	s.clearWeak()
	s.account.fuel -= g.size >> 8
	g.running = false
	return g.size
}

func (s *State) markRoots() {
	s.mark(s.globals.Value())
	s.mark(s.loaded.Value())
	if s.preload != nil {
		s.mark(s.preload.Value())
	}
	if s.registry != nil {
		s.mark(s.registry.Value())
	}
	for _, m := range s.metas {
		if m != nil {
			s.mark(m.Value())
		}
	}
	s.mark(s.main.Value())
	for t := s.cur; t != nil; t = t.resumer {
		s.mark(t.Value())
	}
	for _, v := range s.gc.pending {
		s.mark(v)
	}
}

// mark notes that an object is reachable; what it refers to follows in
// propagate.
func (s *State) mark(v Value) {
	switch v.Kind() {
	case KindString:
		o := v.str()
		if o.bits&bitShared == 0 && o.mark != s.gc.epoch {
			o.mark = s.gc.epoch
			s.gc.size += int64(strOverhead + len(o.s))
		}
	case KindTable, KindFunction, KindUserdata, KindThread:
		o := (*header)(v.p)
		if o.bits&bitShared == 0 && o.mark != s.gc.epoch {
			o.mark = s.gc.epoch
			s.gc.gray = append(s.gc.gray, v)
		}
	}
}

// isDead reports objects a weak table may drop. Strings are values, not
// objects, for this purpose.
func (s *State) isDead(v Value) bool {
	switch v.Kind() {
	case KindTable, KindFunction, KindUserdata, KindThread:
		o := (*header)(v.p)
		return o.bits&bitShared == 0 && o.mark != s.gc.epoch
	case KindString:
		s.mark(v)
	}
	return false
}

func (s *State) propagate() {
	g := &s.gc
	for len(g.gray) > 0 {
		v := g.gray[len(g.gray)-1]
		g.gray = g.gray[:len(g.gray)-1]
		switch v.Kind() {
		case KindTable:
			s.walkTable(v.table())
		case KindFunction:
			s.walkFunction(v.function())
		case KindThread:
			s.walkThread((*Thread)(v.p))
		case KindUserdata:
			u := (*Userdata)(v.p)
			g.size += int64(unsafe.Sizeof(Userdata{}))
			if u.meta != nil {
				s.mark(u.meta.Value())
			}
			for _, x := range u.values {
				s.mark(x)
			}
		}
	}
}

// weakness returns what of a table its metatable declares weak.
func (t *Table) weakness() (keys, values bool) {
	mode, ok := t.meta.handler(evMode).AsString()
	if !ok {
		return false, false
	}
	for _, c := range []byte(mode) {
		keys = keys || c == 'k'
		values = values || c == 'v'
	}
	return keys, values
}

func (s *State) walkTable(t *Table) {
	if t.bits&bitCopyOnWrite != 0 {
		s.gc.size += int64(tableSize)
		return
	}
	s.gc.size += int64(t.footprint())
	if t.meta != nil {
		s.mark(t.meta.Value())
	}
	keys, values := t.weakness()
	if keys || values {
		s.gc.usesWeak = true
		s.gc.weak = append(s.gc.weak, t)
	}
	switch {
	case keys && values:
	case keys:
		s.gc.ephemerons = append(s.gc.ephemerons, t)
		s.markElements(t)
	case values:
		s.markEntries(t, false)
	default:
		s.markElements(t)
		s.markEntries(t, true)
	}
}

// markElements marks the values of the array part.
func (s *State) markElements(t *Table) {
	for i := range uint64(t.alen) {
		s.mark(*t.slot(i))
	}
}

// markEntries marks the keys outside the array part and, if asked, their values.
func (s *State) markEntries(t *Table, values bool) {
	for i := range t.elen {
		if e := t.entry(i); e.v.p != nil {
			s.mark(e.key())
			if values {
				s.mark(e.v)
			}
		}
	}
}

// converge marks values of ephemeron tables whose keys are reachable until
// nothing new is found.
func (s *State) converge() {
	for again := true; again; {
		again = false
		for n := 0; n < len(s.gc.ephemerons); n++ {
			t := s.gc.ephemerons[n]
			for i := range t.elen {
				e := t.entry(i)
				if e.v.p != nil && !s.isDead(e.key()) && s.isDead(e.v) {
					s.mark(e.v)
					again = true
				}
			}
		}
		s.propagate()
	}
}

func (s *State) walkFunction(f *Function) {
	s.gc.size += int64(closureSize) + int64(len(f.bound))*int64(valueSize)
	for _, v := range f.bound {
		s.mark(v)
	}
	for _, u := range f.upvalues {
		if u != nil {
			if u.mark != s.gc.epoch {
				u.mark = s.gc.epoch
				s.gc.size += int64(unsafe.Sizeof(Upvalue{}))
			}
			s.mark(*u.v)
		}
	}
}

// liveTop returns the end of what a running Lua function still needs of the
// stack. Where an instruction allocates, nothing above its own register and
// the variables is alive, though values no longer used may lie there.
func (t *Thread) liveTop(f *frame) int {
	base, p := int(f.fn)+1, t.function(f).proto
	pc := max(0, int(f.pc)-1)
	i := p.code[pc]
	end := 0
	switch i.op() {
	case opNewTable, opClosure:
		end = i.a() + 1
	case opConcat:
		end = i.a() + i.b()
	case opReturn, opSetList, opCall:
		return max(int(f.top), min(t.top, len(t.stack)))
	}
	if end == 0 || len(p.locals) == 0 {
		return int(f.top)
	}
	for n := range p.locals {
		if l := &p.locals[n]; int(l.start) <= pc && pc < int(l.end) {
			end = max(end, int(l.reg)+1)
		}
	}
	return base + end
}

func (s *State) walkThread(t *Thread) {
	s.gc.size += int64(unsafe.Sizeof(Thread{})) + int64(len(t.stack))*int64(valueSize) + int64(cap(t.frames))*int64(frameSize)
	top := 1
	if n := len(t.frames); n > 0 {
		// Registers of callers above the running function are dead. Results
		// a call left open may lie above the registers.
		f := &t.frames[n-1]
		top = int(f.top)
		if f.flags&frameHost == 0 {
			top = t.liveTop(f)
		}
	}
	for _, v := range t.stack[:min(top, len(t.stack))] {
		s.mark(v)
	}
	if t != s.cur && t.status != normal {
		clear(t.stack[min(top, len(t.stack)):])
	}
	s.mark(t.failure)
	if t.hook != nil {
		s.mark(t.hook.fn)
	}
	if t.resumer != nil {
		s.mark(t.resumer.Value())
	}
}

// separate moves unreachable objects with finalizers to the pending list,
// latest first, and marks them: finalizers may use them.
func (s *State) separate() {
	g := &s.gc
	kept := g.finalizable[:0]
	var found []Value
	for _, v := range g.finalizable {
		if s.isDead(v) {
			found = append(found, v)
		} else {
			kept = append(kept, v)
		}
	}
	clear(g.finalizable[len(kept):])
	g.finalizable = kept
	for i := len(found) - 1; i >= 0; i-- {
		g.pending = append(g.pending, found[i])
		s.mark(found[i])
	}
}

// clearWeakValues removes dead values before finalizers can bring their
// objects back.
func (s *State) clearWeakValues() {
	for _, t := range s.gc.weak {
		if _, values := t.weakness(); values {
			s.clearTable(t, false, true)
		}
	}
}

func (s *State) clearWeak() {
	for _, t := range s.gc.weak {
		keys, values := t.weakness()
		s.clearTable(t, keys, values)
	}
}

func (s *State) clearTable(t *Table, keys, values bool) {
	if values {
		for i := range uint64(t.alen) {
			if s.isDead(*t.slot(i)) {
				*t.slot(i) = Nil
			}
		}
		t.trim()
	}
	for i := range t.elen {
		e := t.entry(i)
		if e.v.p != nil && (values && s.isDead(e.v) || keys && s.isDead(e.key())) {
			e.v = Nil
		}
	}
}

// registerFinalizer is called when a metatable is set: an object whose
// metatable has __gc then is finalized once it is unreachable.
func (s *State) registerFinalizer(v Value, meta *Table) {
	if meta == nil || meta.handler(evGC).p == nil {
		return
	}
	o := (*header)(v.p)
	if o.bits&bitFinalizer != 0 {
		return
	}
	o.bits |= bitFinalizer
	s.gc.finalizable = append(s.gc.finalizable, v)
	s.account.memoryNext = min(s.account.memoryNext, s.nextMeasure())
}

// finalize calls the finalizers that wait. Their errors become warnings.
func (s *State) finalize() error {
	g := &s.gc
	if g.finalizing {
		return nil
	}
	g.finalizing = true
	defer func() { g.finalizing = false }()
	for len(g.pending) > 0 {
		v := g.pending[0]
		g.pending = g.pending[1:]
		(*header)(v.p).bits &^= bitFinalizer
		h := s.metamethod(v, evGC)
		if !h.isFunction() {
			continue
		}
		if err := s.callFinalizer(h, v); err != nil {
			if isFatal(err) {
				return err
			}
			s.warn("error in __gc (" + err.Error() + ")")
		}
	}
	return nil
}

func (s *State) callFinalizer(h, v Value) error {
	t := s.cur
	at := s.scratch(t)
	if len(t.frames) > 0 && t.frame().flags&frameHost == 0 {
		at = max(at, min(t.top, len(t.stack)))
	}
	top := t.top
	if err := t.reserve(at + 2); err != nil {
		return err
	}
	// Protect the call: its errors concern no one on this stack.
	t.stack[at], t.stack[at+1] = h, v
	hook := t.hook
	t.hook = nil
	err := s.callIsolated(t, at)
	t.hook = hook
	t.top = top
	return err
}

// callIsolated is callNested without message handlers seeing errors.
func (s *State) callIsolated(t *Thread, at int) error {
	if s.depth >= maxDepth {
		return s.depthError()
	}
	s.depth++
	t.pinned++
	below := len(t.frames)
	exit, err := s.call(t, at, 1, returnTo{want: -1, flags: frameFresh | frameFinalizer})
	if (err != nil && len(t.frames) > below) || err == nil && !exit {
		err = s.exec(err)
	}
	t.pinned--
	s.depth--
	return err
}

// Close runs the finalizers of all objects that have one. The state must not
// be used afterwards.
func (s *State) Close() error {
	g := &s.gc
	for n := 0; len(g.finalizable) > 0 && n < 10; n++ {
		for i := len(g.finalizable) - 1; i >= 0; i-- {
			g.pending = append(g.pending, g.finalizable[i])
		}
		g.finalizable = nil
		if err := s.finalize(); err != nil {
			return err
		}
	}
	return nil
}
