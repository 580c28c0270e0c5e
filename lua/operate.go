package lua

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// field returns t[k] for a constant key when no metamethod is involved, and
// remembers where it was found.
func (t *Table) field(k *Str, hint *uint32) (Value, bool) {
	e := t.findStr(k)
	if e == nil {
		return Nil, t.meta == nil
	}
	t.remember(e, k, hint)
	return e.v, e.v.p != nil || t.meta == nil
}

// remember notes the position of a key's entry. The entry takes over the
// constant as its key: the strings are equal, and the next access finds it by
// identity.
func (t *Table) remember(e *entry, k *Str, hint *uint32) {
	at := uint32((uintptr(unsafe.Pointer(e)) - uintptr(t.ents)) / entrySize)
	if atomic.LoadUint32(hint) != at {
		atomic.StoreUint32(hint, at)
	}
	if e.k.p != unsafe.Pointer(k) && t.bits&bitCopyOnWrite == 0 {
		e.k.p = unsafe.Pointer(k)
	}
}

// method returns t[k] following __index tables; false when a function decides
// or nothing is found.
func (t *Table) method(k *Str, hint *uint32) (Value, bool) {
	at := atomic.LoadUint32(hint)
	for range 10 {
		if at < t.elen {
			if e := t.entry(at); e.k.p == unsafe.Pointer(k) && e.v.p != nil {
				return e.v, true
			}
		}
		if e := t.findStr(k); e != nil && e.v.p != nil {
			t.remember(e, k, hint)
			return e.v, true
		}
		if t.meta == nil {
			return Nil, true
		}
		h := t.meta.handler(evIndex)
		if !h.isTable() {
			return Nil, h.p == nil
		}
		t = h.table()
	}
	return Nil, false
}

// setField does t[k] = v for a constant key when no metamethod is involved.
func (t *Table) setField(s *State, k *Str, v Value, hint *uint32) (bool, error) {
	if t.bits&bitCopyOnWrite != 0 {
		t.own()
	}
	e := t.findStr(k)
	if e != nil && (e.v.p != nil || t.meta == nil) {
		t.remember(e, k, hint)
		t.replace(e, v)
		return true, nil
	}
	if t.meta != nil && t.meta.handler(evNewIndex).p != nil {
		return false, nil
	}
	if e != nil {
		t.replace(e, v)
		return true, nil
	}
	if v.p == nil {
		return true, nil
	}
	return true, t.insert(s, Value{unsafe.Pointer(k), uint64(k.hashed())}, v)
}

// newTable returns a table with room for a constructor's items and its size.
func newTable(array uint32, entries int) (t *Table, size int) {
	t = &Table{header: header{kind: KindTable}}
	size = tableSize
	if array != 0 {
		t.makeArray(array)
		size += int(array) * int(valueSize)
	}
	if entries != 0 {
		t.makeEntries(entryCap(entries))
		size += entriesSize(t.ecap)
	}
	return t, size
}

// makeWay lets a call proceed that lacked fuel or room for its frame.
func (s *State) makeWay(t *Thread) error {
	if n := len(t.frames); n == cap(t.frames) {
		t.pushFrame()
		t.frames = t.frames[:n]
	}
	if s.account.fuel < 0 {
		return s.refuel()
	}
	return nil
}

// indexOp does R[a] = v[k].
func (s *State) indexOp(t *Thread, v, k Value, a int) error {
	r, h, target, err := s.lookup(v, k)
	if err != nil {
		return err
	}
	if h.p != nil {
		return s.invoke(t, contStore, a, h, target, k)
	}
	t.stack[int(t.frame().fn)+1+a] = r
	return nil
}

// assignOp does v[k] = x.
func (s *State) assignOp(t *Thread, v, k, x Value) error {
	h, target, err := s.assign(v, k, x)
	if err != nil || h.p == nil {
		return err
	}
	return s.invoke(t, contDiscard, 0, h, target, k, x)
}

// arithOp does R[A] = b op c, where numbers of different kinds or metamethods
// are involved.
func (s *State) arithOp(t *Thread, op ArithOp, b, c Value, i instruction) error {
	if i.op() >= opAddK && i.op() <= opShrK && i.d() == 1 {
		b, c = c, b // the constant was on the left
	}
	r, ok, err := s.rawArith(op, b, c)
	if err != nil {
		return err
	}
	if ok {
		t.stack[int(t.frame().fn)+1+i.a()] = r
		return nil
	}
	h := s.binaryHandler(op.event(), b, c)
	if h.p == nil {
		return s.arithError(op, b, c)
	}
	return s.invoke(t, contStore, i.a(), h, b, c)
}

// lengthOp does R[a] = #v.
func (s *State) lengthOp(t *Thread, v Value, a int) error {
	r, h, err := s.rawLength(v)
	if err != nil {
		return err
	}
	if h.p != nil {
		return s.invoke(t, contStore, a, h, v, v)
	}
	t.stack[int(t.frame().fn)+1+a] = r
	return nil
}

// compareOp asks a metamethod to compare.
func (s *State) compareOp(t *Thread, ev event, x, y Value) error {
	h := s.binaryHandler(ev, x, y)
	if h.p == nil {
		return s.compareError(x, y)
	}
	return s.invoke(t, contCompare, 0, h, x, y)
}

// finishCompare takes the conditional jump of the running function's last
// instruction as a metamethod decided.
func (s *State) finishCompare(t *Thread, yes bool) {
	f := t.frame()
	i := t.function(f).proto.code[f.pc-1]
	if negated := (i.op()-opEq)&1 == 1; yes != negated {
		f.pc += int32(i.j())
	}
}

// tailCall replaces the running frame by a call.
func (s *State) tailCall(t *Thread, at, nargs int) error {
	f := *t.frame()
	for chain := 0; !t.stack[at].isFunction(); chain++ {
		h := s.metamethod(t.stack[at], evCall)
		if h.p == nil || chain > maxDepth {
			return s.typeErrorAt("call", t.stack[at], at)
		}
		if err := t.reserve(at + nargs + 2); err != nil {
			return err
		}
		copy(t.stack[at+1:at+nargs+2], t.stack[at:at+nargs+1])
		t.stack[at] = h
		nargs++
	}
	if p := t.stack[at].function().proto; p == nil || p.hosted() {
		// Host functions run at once, and those a host wrote in Lua keep their
		// caller on the stack like them: an ordinary call, whose results the
		// return instruction behind it passes on.
		_, err := s.call(t, at, nargs, -1, 0, contResults, 0)
		return err
	}
	copy(t.stack[f.ret:], t.stack[at:at+nargs+1])
	t.frames = t.frames[:len(t.frames)-1]
	_, err := s.call(t, int(f.ret), nargs, int(f.want), f.flags&^frameTail|frameTail, f.cont, f.a)
	return err
}

// prepareVarargs moves function and parameters above the variable arguments.
func (s *State) prepareVarargs(t *Thread, p *Proto) error {
	f := t.frame()
	nargs, params := int(f.extra), int(p.params)
	at := int(f.fn)
	fn := at + nargs + 1
	if nargs < params {
		fn = at + params + 1
	}
	if err := t.reserve(fn + 1 + int(p.maxStack)); err != nil {
		return err
	}
	f = t.frame()
	t.stack[fn] = t.stack[at]
	for i := 1; i <= params; i++ {
		t.stack[fn+i] = t.stack[at+i]
		t.stack[at+i] = Nil
	}
	f.fn, f.top = int32(fn), int32(fn+1+int(p.maxStack))
	f.extra = int32(max(0, nargs-params))
	return nil
}

// varargs copies variable arguments to R[a] and up; want < 0 copies all.
func (s *State) varargs(t *Thread, a, want int) error {
	f := t.frame()
	n := int(f.extra)
	fn := int(f.fn)
	dst := fn + 1 + a
	if want < 0 {
		if err := t.reserve(dst + n); err != nil {
			return err
		}
		want = n
		t.top = dst + n
		s.account.fuel -= int64(n >> 3) // the next call or jump looks at it
	}
	m := copy(t.stack[dst:dst+want], t.stack[fn-n:fn])
	clear(t.stack[dst+m : dst+want])
	s.account.fuel -= int64(want >> 4) // a call or jump will look at it
	return nil
}

// setList stores list items of a table constructor.
func (s *State) setList(t *Thread, i instruction) error {
	f := t.frame()
	at := int(f.fn) + 1 + i.a()
	n := i.b()
	if n == 0 {
		n = t.top - at - 1
	}
	tb, ok := t.stack[at].AsTable()
	if !ok { // only code that was not compiled here, or a debugger, does that
		return s.typeErrorAt("index", t.stack[at], at)
	}
	offset := i.j()
	if need := offset + n; need > int(tb.acap) {
		if err := tb.growArray(s, need); err != nil {
			return err
		}
	}
	if offset == int(tb.alen) && tb.elen == 0 {
		copy(unsafe.Slice((*Value)(tb.arr), tb.acap)[offset:], t.stack[at+1:at+1+n])
		tb.alen = uint32(offset + n)
		tb.trim()
		return nil
	}
	for j := range n {
		if err := tb.setInt(s, int64(offset+j+1), t.stack[at+1+j]); err != nil {
			return err
		}
	}
	return nil
}

// newClosure returns a closure of p created by a function with the given
// registers.
func (s *State) newClosure(t *Thread, outer *Function, p *Proto, base int) *Function {
	f := newClosure(p)
	for i := range p.upvalues {
		d := &p.upvalues[i]
		if d.inStack {
			f.upvalues[i] = t.findUpvalue(base + int(d.index))
		} else {
			f.upvalues[i] = outer.upvalues[d.index]
		}
	}
	s.account.memory += int64(closureSize)
	return f
}

// iterNext is next(t, k) for a loop at ra: iterator, table, key, closing
// value, and then key and value of the turn. The place of the last key is
// remembered in the iterator's slot, which scripts do not see.
func (s *State) iterNext(t *Table, ra *Value) error {
	slots := (*[6]Value)(unsafe.Pointer(ra))
	key := slots[2]
	pos := int(ra.n)
	if !t.isAt(pos, key) {
		if pos = t.position(key); pos < 0 {
			return &Error{Value: String(string(errNextKey))}
		}
	}
	k, v, next := t.at(pos)
	slots[4], slots[5] = k, v
	ra.n = uint64(max(next, 0))
	return nil
}

// isAt verifies a remembered position: that of the key before it is k.
func (t *Table) isAt(pos int, k Value) bool {
	if pos == 0 {
		return k.p == nil
	}
	if k.isInt() && k.n == uint64(pos) && pos > 0 && pos <= int(t.alen) {
		return true
	}
	if at := pos - int(t.acap) - 1; at >= 0 && at < int(t.elen) {
		e := t.entry(uint32(at))
		return e.k.p == k.p && (e.k.n == k.n || e.k.isString())
	}
	return false
}

// iterIpairs steps an ipairs loop; false leaves it to the general way.
func iterIpairs(t *Table, ra *Value) bool {
	slots := (*[6]Value)(unsafe.Pointer(ra))
	if !slots[2].isInt() {
		return false
	}
	i := slots[2].n + 1
	if at := i - 1; at < uint64(t.alen) {
		if v := t.slot(at); v.p != nil {
			slots[4], slots[5] = Value{unsafe.Pointer(&intHeader), i}, *v
			return true
		}
	}
	if t.meta != nil {
		return false
	}
	v := t.getInt(int64(i))
	slots[4], slots[5] = Value{unsafe.Pointer(&intHeader), i}, v
	if v.p == nil {
		slots[4] = Nil
	}
	return true
}

// forPrep prepares a numeric loop at ra: start, limit, step, variable. For
// integers the limit becomes the number of turns still to do. It reports a
// loop that does not run.
func (s *State) forPrep(t *Thread, ra *Value) (skip bool, err error) {
	slots := (*[4]Value)(unsafe.Pointer(ra))
	start, limit, step := slots[0], slots[1], slots[2]
	if start.isInt() && step.isInt() {
		if step.n == 0 {
			return false, s.runtimeError("'for' step is zero")
		}
		last, skip, err := s.forLimit(start.int(), limit, step.int())
		if err != nil || skip {
			return skip, err
		}
		count := uint64(last) - start.n
		if step.int() > 0 {
			if step.n != 1 {
				count /= step.n
			}
		} else {
			count = start.n - uint64(last)
			count /= uint64(-(step.int() + 1)) + 1
		}
		slots[1] = Value{unsafe.Pointer(&intHeader), count}
		slots[3] = start
		return false, nil
	}
	return s.forPrepFloat(slots)
}

// forLimit turns the limit of an integer loop into an integer.
func (s *State) forLimit(start int64, limit Value, step int64) (last int64, skip bool, err error) {
	if limit.isInt() {
		last = limit.int()
	} else {
		n, ok := toNumber(limit)
		if !ok {
			return 0, false, s.forError("limit", limit)
		}
		f, _ := n.AsFloat()
		switch {
		case n.isInt():
			last = n.int()
		case math.IsNaN(f):
			return 0, true, nil
		case f >= 0x1p63:
			if step < 0 {
				return 0, true, nil
			}
			last = math.MaxInt64
		case f < -0x1p63:
			if step > 0 {
				return 0, true, nil
			}
			last = math.MinInt64
		case step > 0:
			last = int64(math.Floor(f))
		default:
			last = int64(math.Ceil(f))
		}
	}
	if step > 0 {
		return last, start > last, nil
	}
	return last, start < last, nil
}

func (s *State) forPrepFloat(slots *[4]Value) (skip bool, err error) {
	limit, ok := toFloat(slots[1])
	if !ok {
		return false, s.forError("limit", slots[1])
	}
	step, ok := toFloat(slots[2])
	if !ok {
		return false, s.forError("step", slots[2])
	}
	start, ok := toFloat(slots[0])
	if !ok {
		return false, s.forError("initial value", slots[0])
	}
	if step == 0 {
		return false, s.runtimeError("'for' step is zero")
	}
	if step > 0 && limit < start || !(step > 0) && start < limit {
		return true, nil
	}
	slots[0], slots[1], slots[2], slots[3] = Float(start), Float(limit), Float(step), Float(start)
	return false, nil
}

func (s *State) forError(what string, v Value) error {
	return s.runtimeError("bad 'for' %s (number expected, got %s)", what, s.typeName(v))
}
