package lua

import (
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
