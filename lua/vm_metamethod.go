package lua

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// event is a metamethod. The first eight have a bit in header.flags that says
// a table used as metatable does not define them.
type event uint8

const (
	evIndex event = iota
	evNewIndex
	evGC
	evMode
	evLen
	evEq
	evCall
	evClose
	lastCached = evClose

	evAdd event = iota - 1
	evSub
	evMul
	evMod
	evPow
	evDiv
	evIDiv
	evBand
	evBor
	evBxor
	evShl
	evShr
	evUnm
	evBnot
	evLt
	evLe
	evConcat
	evToString
	evName
	evPairs
	evMetatable
	eventCount
)

var eventStrings = [eventCount]*Str{
	evIndex: newConstant("__index"), evNewIndex: newConstant("__newindex"),
	evGC: newConstant("__gc"), evMode: newConstant("__mode"), evLen: newConstant("__len"),
	evEq: newConstant("__eq"), evCall: newConstant("__call"), evClose: newConstant("__close"),
	evAdd: newConstant("__add"), evSub: newConstant("__sub"), evMul: newConstant("__mul"),
	evMod: newConstant("__mod"), evPow: newConstant("__pow"), evDiv: newConstant("__div"),
	evIDiv: newConstant("__idiv"), evBand: newConstant("__band"), evBor: newConstant("__bor"),
	evBxor: newConstant("__bxor"), evShl: newConstant("__shl"), evShr: newConstant("__shr"),
	evUnm: newConstant("__unm"), evBnot: newConstant("__bnot"), evLt: newConstant("__lt"),
	evLe: newConstant("__le"), evConcat: newConstant("__concat"),
	evToString: newConstant("__tostring"), evName: newConstant("__name"),
	evPairs: newConstant("__pairs"), evMetatable: newConstant("__metatable"),
}

// eventNames finds the constants by their text, so that compiled code uses the
// same objects.
var eventNames = func() map[string]*Str {
	m := make(map[string]*Str, eventCount)
	for _, s := range eventStrings {
		m[s.s] = s
	}
	return m
}()

// metatable returns v's metatable, or nil.
func (s *State) metatable(v Value) *Table {
	switch v.Kind() {
	case KindTable:
		return v.table().meta
	case KindUserdata:
		return (*Userdata)(v.p).meta
	default:
		return s.metas[v.Kind()]
	}
}

// metamethod returns v's handler for an event, or Nil.
func (s *State) metamethod(v Value, ev event) Value {
	return s.metatable(v).handler(ev)
}

// handler returns the handler a metatable defines; t may be nil.
func (t *Table) handler(ev event) Value {
	if t == nil {
		return Nil
	}
	if ev <= lastCached {
		if t.flags&(1<<ev) != 0 {
			return Nil
		}
		if e := t.findStr(eventStrings[ev]); e != nil && e.v.p != nil {
			return e.v
		}
		if t.bits&bitCopyOnWrite == 0 {
			t.flags |= 1 << ev
		}
		return Nil
	}
	return t.getStr(eventStrings[ev])
}

// maxChain bounds how many __index or __newindex tables one access follows.
const maxChain = 2000

// lookup finds v[k]. When a handler function has to decide, it returns that
// function and the value to give it instead.
func (s *State) lookup(v, k Value) (result, handler, target Value, err error) {
	for depth := 0; depth < maxChain; depth++ {
		var h Value
		if v.isTable() {
			t := v.table()
			if r := t.get(k); r.p != nil {
				return r, Nil, Nil, nil
			}
			if h = t.meta.handler(evIndex); h.p == nil {
				return Nil, Nil, Nil, nil
			}
		} else if h = s.metamethod(v, evIndex); h.p == nil {
			return Nil, Nil, Nil, s.indexError(v, k, depth == 0)
		}
		if h.isFunction() {
			return Nil, h, v, nil
		}
		v = h
	}
	return Nil, Nil, Nil, s.runtimeError("'__index' chain too long; possible loop")
}

// assign does v[k] = x, or returns the handler function that has to.
func (s *State) assign(v, k, x Value) (handler, target Value, err error) {
	for depth := 0; depth < maxChain; depth++ {
		var h Value
		if v.isTable() {
			t := v.table()
			if t.meta == nil {
				return Nil, Nil, s.rawSet(t, k, x)
			}
			if t.get(k).p != nil {
				return Nil, Nil, s.rawSet(t, k, x)
			}
			if h = t.meta.handler(evNewIndex); h.p == nil {
				return Nil, Nil, s.rawSet(t, k, x)
			}
		} else if h = s.metamethod(v, evNewIndex); h.p == nil {
			return Nil, Nil, s.indexError(v, k, depth == 0)
		}
		if h.isFunction() {
			return h, v, nil
		}
		v = h
	}
	return Nil, Nil, s.runtimeError("'__newindex' chain too long; possible loop")
}

func (s *State) rawSet(t *Table, k, v Value) error {
	if err := t.set(s, k, v); err != nil {
		if key := keyError(""); errors.As(err, &key) {
			return s.runtimeError("%v", err)
		}
		return err
	}
	return nil
}

// index is v[k] for host functions.
func (s *State) index(v, k Value) (Value, error) {
	r, h, target, err := s.lookup(v, k)
	if err != nil || h.p == nil {
		return r, err
	}
	return s.callBack(h, target, k)
}

// setIndex is v[k] = x for host functions.
func (s *State) setIndex(v, k, x Value) error {
	h, target, err := s.assign(v, k, x)
	if err != nil || h.p == nil {
		return err
	}
	_, err = s.callBack(h, target, k, x)
	return err
}

// length is #v for host functions.
func (s *State) length(v Value) (Value, error) {
	r, h, err := s.rawLength(v)
	if err != nil || h.p == nil {
		return r, err
	}
	return s.callBack(h, v, v)
}

// rawLength returns #v or the handler that computes it.
func (s *State) rawLength(v Value) (result, handler Value, err error) {
	switch v.Kind() {
	case KindTable:
		if h := v.table().meta.handler(evLen); h.p != nil {
			return Nil, h, nil
		}
		return Int(int64(v.table().alen)), Nil, nil
	case KindString:
		return Int(int64(len(v.str().s))), Nil, nil
	}
	if h := s.metamethod(v, evLen); h.p != nil {
		return Nil, h, nil
	}
	return Nil, Nil, s.typeError("get length of", v)
}

// callBack calls a function from Go and returns its first result.
func (s *State) callBack(fn Value, args ...Value) (Value, error) {
	t := s.cur
	at := s.scratch(t)
	if err := t.reserve(at + len(args) + 1); err != nil {
		return Nil, err
	}
	t.stack[at] = fn
	copy(t.stack[at+1:], args)
	if err := s.callNested(t, at, len(args)); err != nil {
		return Nil, err
	}
	if t.top == at {
		return Nil, nil
	}
	return t.stack[at], nil
}

// scratch returns the first stack position a thread does not use.
func (s *State) scratch(t *Thread) int {
	if len(t.frames) == 0 {
		return 0
	}
	f := t.frame()
	if f.flags&frameHost == 0 && t.top > int(f.top) {
		return t.top
	}
	return int(f.top)
}

// typeName returns the type of v as error messages show it: __name of the
// metatable when that is a string.
func (s *State) typeName(v Value) string {
	switch v.Kind() {
	case KindTable, KindUserdata:
		if name := s.metatable(v).handler(evName); name.isString() {
			return name.str().s
		}
	case kindLight:
		return "light userdata"
	}
	return v.TypeName()
}

// display is tostring: with __tostring and __name.
func (s *State) display(v Value) (string, error) {
	if !v.isString() && !v.isNumber() {
		meta := s.metatable(v)
		if h := meta.handler(evToString); h.p != nil {
			r, err := s.callBack(h, v)
			if err != nil {
				return "", err
			}
			if r.isNumber() {
				return r.String(), nil
			}
			if !r.isString() {
				return "", s.hostError("'__tostring' must return a string")
			}
			return r.str().s, nil
		}
		if name := meta.handler(evName); name.isString() {
			return fmt.Sprintf("%s: 0x%08x", name.str().s, uint64(s.identify(v))*0x20), nil
		}
	}
	return s.tostring(v), nil
}

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
