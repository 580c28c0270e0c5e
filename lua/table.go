package lua

import (
	"iter"
	"math"
	"unsafe"
)

// Table is a Lua table: an array part for the keys 1..n and, for all other
// keys, a dense list of entries in insertion order with an index beside it.
//
// Removing a key leaves its entry behind, without a value, until the list is
// rebuilt; that is why a traversal may remove what it finds, and a key that
// comes back before then keeps its place.
type Table struct {
	header
	id    uint32
	arr   unsafe.Pointer // *[acap]Value; slots from alen on are nil
	ents  unsafe.Pointer // *[ecap]entry
	index unsafe.Pointer // *[2*ecap]uint32, position+1 or 0; nil for small tables
	meta  *Table
	// alen is the length of the array part. Its last slot is never nil and
	// the key alen+1 is never among the entries, so alen is a border.
	alen, acap uint32
	elen, ecap uint32
}

// entry is a key and its value. A string key keeps its hash in k.n, so that
// most comparisons need not look at the string.
type entry struct{ k, v Value }

const (
	valueSize = unsafe.Sizeof(Value{})
	entrySize = unsafe.Sizeof(entry{})
	tableSize = int(unsafe.Sizeof(Table{}))
	// smallTable is the number of entries searched without an index.
	smallTable = 8
	maxTable   = 1 << 30
)

// NewTable returns an empty table with room for the given numbers of array
// elements and other entries.
func NewTable(array, entries int) *Table {
	t := &Table{header: header{kind: KindTable}}
	if array > 0 {
		t.makeArray(uint32(min(array, maxTable)))
	}
	if entries > 0 {
		t.makeEntries(entryCap(entries))
	}
	return t
}

// Value returns t as a value.
func (t *Table) Value() Value { return Value{unsafe.Pointer(t), 0} }

// Metatable returns t's metatable, or nil.
func (t *Table) Metatable() *Table { return t.meta }

// SetMetatable sets or, with nil, removes t's metatable. Finalizers (__gc) are
// honoured only for metatables set by scripts.
func (t *Table) SetMetatable(meta *Table) { t.meta = meta }

// Len returns a border of t: a number n with t[n] present (or n = 0) and
// t[n+1] absent.
func (t *Table) Len() int { return int(t.alen) }

// Get returns the value at k without metamethods.
func (t *Table) Get(k Value) Value { return t.get(k) }

// Set stores v at k without metamethods. It reports keys that cannot be: nil
// and NaN.
func (t *Table) Set(k, v Value) error { return t.set(nil, k, v) }

// GetString returns the value at the string key k.
func (t *Table) GetString(k string) Value {
	if t.elen == 0 {
		return Nil
	}
	key := Str{header: header{kind: KindString}, s: k}
	return t.getStr(&key)
}

// SetString stores v at the string key k.
func (t *Table) SetString(k string, v Value) { _ = t.setStr(nil, newStr(k), v) }

// GetInt returns the value at the integer key i.
func (t *Table) GetInt(i int64) Value { return t.getInt(i) }

// SetInt stores v at the integer key i.
func (t *Table) SetInt(i int64, v Value) { _ = t.setInt(nil, i, v) }

// Append stores v after the border, that is at Len()+1.
func (t *Table) Append(v Value) { _ = t.setInt(nil, int64(t.alen)+1, v) }

// Next returns the pair that follows the key k in iteration order, starting
// with Nil, and false at the end. It reports a key that is not in the table.
func (t *Table) Next(k Value) (key, value Value, ok bool, err error) { return t.next(k) }

// All iterates over the pairs of t: first the array part in order, then the
// other keys in the order of their insertion. Pairs may be removed meanwhile.
func (t *Table) All() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		for pos := 0; ; {
			k, v, next := t.at(pos)
			if next < 0 || !yield(k, v) {
				return
			}
			pos = next
		}
	}
}

func (t *Table) slot(i uint64) *Value { return (*Value)(unsafe.Add(t.arr, i*uint64(valueSize))) }
func (t *Table) entry(i uint32) *entry {
	return (*entry)(unsafe.Add(t.ents, uintptr(i)*entrySize))
}
func (t *Table) indexSlot(i uint32) *uint32 { return (*uint32)(unsafe.Add(t.index, uintptr(i)*4)) }

func (t *Table) get(k Value) Value {
	switch k.Kind() {
	case KindNil:
		return Nil
	case KindString:
		return t.getStr(k.str())
	case KindInt:
		return t.getInt(k.int())
	case KindFloat:
		if i, ok := floatToInt(k.float()); ok {
			return t.getInt(i)
		}
	}
	if e := t.findPlain(k); e != nil {
		return e.v
	}
	return Nil
}

func (t *Table) getInt(i int64) Value {
	if at := uint64(i) - 1; at < uint64(t.alen) {
		return *t.slot(at)
	}
	if t.elen != 0 {
		if e := t.findPlain(Int(i)); e != nil {
			return e.v
		}
	}
	return Nil
}

func (t *Table) getStr(k *Str) Value {
	if e := t.findStr(k); e != nil {
		return e.v
	}
	return Nil
}

// findStr returns the entry of the string key k, which may be one whose value
// was removed, or nil.
func (t *Table) findStr(k *Str) *entry {
	h := k.hash
	if h == 0 {
		h = k.hashed()
	}
	n := uint64(h)
	if t.index == nil {
		for i := uint32(0); i < t.elen; i++ {
			if e := t.entry(i); e.holds(k, n) {
				return e
			}
		}
		return nil
	}
	mask := t.ecap*2 - 1
	for i := h & mask; ; i = (i + 1) & mask {
		at := *t.indexSlot(i)
		if at == 0 {
			return nil
		}
		if e := t.entry(at - 1); e.holds(k, n) {
			return e
		}
	}
}

// holds reports whether the key of an entry is the string k, whose hash is n.
func (e *entry) holds(k *Str, n uint64) bool {
	return e.k.n == n && (e.k.p == unsafe.Pointer(k) || sameString(e.k.p, k))
}

// sameString compares the string k with what p points to, which may be
// something else that happens to have the payload of k's hash.
func sameString(p unsafe.Pointer, k *Str) bool {
	return (*header)(p).kind == KindString && (*Str)(p).s == k.s
}

// findPlain returns the entry of a key that is not a string, or nil. Float
// keys must have been turned into integers where they can be.
func (t *Table) findPlain(k Value) *entry {
	if t.index == nil {
		for i := uint32(0); i < t.elen; i++ {
			if e := t.entry(i); e.k == k {
				return e
			}
		}
		return nil
	}
	mask := t.ecap*2 - 1
	for i := hashPlain(k) & mask; ; i = (i + 1) & mask {
		at := *t.indexSlot(i)
		if at == 0 {
			return nil
		}
		if e := t.entry(at - 1); e.k == k {
			return e
		}
	}
}

// find returns the entry of any key that is not in the array part.
func (t *Table) find(k Value) *entry {
	switch k.Kind() {
	case KindString:
		return t.findStr(k.str())
	case KindFloat:
		if i, ok := floatToInt(k.float()); ok {
			k = Int(i)
		}
	}
	return t.findPlain(k)
}

// hashPlain spreads numbers and booleans by their payload, objects by their
// address. Addresses decide where a key sits in the index, never the order of
// iteration.
func hashPlain(k Value) uint32 {
	x := k.n
	if k.n == 0 {
		x = uint64(uintptr(k.p))
	}
	return uint32((x * numberMix) >> 32)
}

func hashKey(k Value) uint32 {
	if k.isString() {
		return uint32(k.n)
	}
	return hashPlain(k)
}

// keyError reports keys no table can hold.
type keyError string

func (e keyError) Error() string { return string(e) }

const (
	errNilKey = keyError("table index is nil")
	errNaNKey = keyError("table index is NaN")
)

// set stores v at k, charging growth to s when s is not nil.
func (t *Table) set(s *State, k, v Value) error {
	switch k.Kind() {
	case KindNil:
		return errNilKey
	case KindString:
		return t.setStr(s, k.str(), v)
	case KindInt:
		return t.setInt(s, k.int(), v)
	case KindFloat:
		if i, ok := floatToInt(k.float()); ok {
			return t.setInt(s, i, v)
		}
		if math.IsNaN(k.float()) {
			return errNaNKey
		}
	}
	return t.setPlain(s, k, v)
}

func (t *Table) setStr(s *State, k *Str, v Value) error {
	if t.bits&bitCopyOnWrite != 0 {
		t.own()
	}
	if e := t.findStr(k); e != nil {
		t.replace(e, v)
		return nil
	}
	if v.p == nil {
		return nil
	}
	return t.insert(s, Value{unsafe.Pointer(k), uint64(k.hashed())}, v)
}

func (t *Table) setPlain(s *State, k, v Value) error {
	if t.bits&bitCopyOnWrite != 0 {
		t.own()
	}
	if e := t.findPlain(k); e != nil {
		t.replace(e, v)
		return nil
	}
	if v.p == nil {
		return nil
	}
	return t.insert(s, k, v)
}

// replace stores v in an entry found. A value that comes back may be a
// metamethod, so what is known to be absent must be forgotten.
func (t *Table) replace(e *entry, v Value) {
	if e.v.p == nil {
		t.flags = 0
	}
	e.v = v
}

func (t *Table) setInt(s *State, i int64, v Value) error {
	at := uint64(i) - 1
	if at < uint64(t.alen) {
		if t.bits&bitCopyOnWrite != 0 {
			t.own()
		}
		*t.slot(at) = v
		if v.p == nil && at == uint64(t.alen)-1 {
			t.trim()
		}
		return nil
	}
	if at == uint64(t.alen) {
		return t.push(s, v)
	}
	if at < uint64(t.acap) && t.elen == 0 {
		if v.p != nil {
			*t.slot(at) = v
			t.alen = uint32(at) + 1
		}
		return nil
	}
	return t.setPlain(s, Int(i), v)
}

// push stores v at alen+1, the first key past the array part.
func (t *Table) push(s *State, v Value) error {
	if v.p == nil {
		return nil
	}
	if t.bits&bitCopyOnWrite != 0 {
		t.own()
	}
	if t.alen == t.acap {
		if err := t.growArray(s, max(4, int(t.acap)*2)); err != nil {
			return err
		}
	}
	*t.slot(uint64(t.alen)) = v
	t.alen++
	if t.elen != 0 {
		t.migrate()
	}
	return nil
}

// trim restores the rule that the last slot of the array part is not nil.
func (t *Table) trim() {
	for t.alen > 0 && t.slot(uint64(t.alen)-1).p == nil {
		t.alen--
	}
}

// at returns the pair at or after position pos of the iteration order and the
// position after it, or a negative one at the end.
func (t *Table) at(pos int) (k, v Value, next int) {
	for ; pos < int(t.alen); pos++ {
		if v := *t.slot(uint64(pos)); v.p != nil {
			return Int(int64(pos) + 1), v, pos + 1
		}
	}
	// The array part may shrink during a traversal; its positions stay below
	// acap, and those of the entries above.
	i := max(0, pos-int(t.acap))
	for ; i < int(t.elen); i++ {
		if e := t.entry(uint32(i)); e.v.p != nil {
			return e.key(), e.v, int(t.acap) + i + 1
		}
	}
	return Nil, Nil, -1
}

// key returns the key as a value scripts may see.
func (e *entry) key() Value {
	if (*header)(e.k.p).kind == KindString {
		return Value{e.k.p, 0}
	}
	return e.k
}

// position returns where the traversal goes on after the key k, or a negative
// number when k is not a key of t.
func (t *Table) position(k Value) int {
	if k.p == nil {
		return 0
	}
	i, isInt := k.AsInt()
	if isInt && uint64(i)-1 < uint64(t.alen) {
		return int(i)
	}
	if e := t.find(k); e != nil {
		return int(t.acap) + int((uintptr(unsafe.Pointer(e))-uintptr(t.ents))/entrySize) + 1
	}
	if isInt && uint64(i)-1 < uint64(t.acap) {
		return int(t.acap)
	}
	return -1
}

const errNextKey = keyError("invalid key to 'next'")

func (t *Table) next(k Value) (key, value Value, ok bool, err error) {
	pos := t.position(k)
	if pos < 0 {
		return Nil, Nil, false, errNextKey
	}
	key, value, pos = t.at(pos)
	return key, value, pos >= 0, nil
}
