package lua

import (
	"math/bits"
	"unsafe"
)

// entryCap returns the capacity of an entry list for n entries: exact for
// small tables, a power of two for indexed ones.
func entryCap(n int) uint32 {
	if n <= smallTable {
		return uint32(n)
	}
	return uint32(1) << bits.Len(uint(min(n, maxTable)-1))
}

func (t *Table) makeArray(n uint32) {
	if n > 0 {
		arr := make([]Value, n)
		t.arr = unsafe.Pointer(&arr[0])
	}
	t.acap = n
}

func (t *Table) makeEntries(n uint32) {
	t.ents, t.index, t.ecap = nil, nil, n
	if n > 0 {
		ents := make([]entry, n)
		t.ents = unsafe.Pointer(&ents[0])
	}
	if n > smallTable {
		index := make([]uint32, 2*n)
		t.index = unsafe.Pointer(&index[0])
	}
}

func entriesSize(n uint32) int {
	size := int(n) * int(entrySize)
	if n > smallTable {
		size += int(n) * 8
	}
	return size
}

// footprint returns the bytes t occupies itself.
func (t *Table) footprint() int {
	return tableSize + int(t.acap)*int(valueSize) + entriesSize(t.ecap)
}

func (t *Table) growArray(s *State, n int) error {
	if n > maxTable {
		return errTableOverflow
	}
	if s != nil {
		if err := s.alloc((n - int(t.acap)) * int(valueSize)); err != nil {
			return err
		}
	}
	old, alen := t.arr, t.alen
	t.makeArray(uint32(n))
	copy(unsafe.Slice((*Value)(t.arr), n), unsafe.Slice((*Value)(old), alen))
	return nil
}

const errTableOverflow = keyError("table overflow")

// migrate moves the entries for alen+1 and what follows it to the array part.
func (t *Table) migrate() {
	for t.alen < t.acap {
		e := t.findPlain(Int(int64(t.alen) + 1))
		if e == nil || e.v.p == nil {
			return
		}
		*t.slot(uint64(t.alen)) = e.v
		e.v = Nil
		t.alen++
	}
	// The array part is full. When its successor waits among the entries,
	// leave room for it and go on.
	e := t.findPlain(Int(int64(t.alen) + 1))
	if e != nil && e.v.p != nil && t.growArray(nil, int(t.acap)*2) == nil {
		t.migrate()
	}
}

// insert adds an entry for a key that has none; string keys carry their hash.
func (t *Table) insert(s *State, k, v Value) error {
	if t.elen == t.ecap {
		size, err := t.rehash(s, k)
		if err != nil {
			return err
		}
		if at := k.n - 1; k.isInt() && at >= uint64(t.alen) && at < uint64(size) {
			// It belongs to the array part now, as do all others up to size,
			// so nothing before it is left among the entries.
			*t.slot(at) = v
			t.alen = uint32(at) + 1
			if t.elen != 0 {
				t.migrate()
			}
			return nil
		}
		if k.isInt() {
			return t.setInt(s, k.int(), v)
		}
	}
	t.flags = 0
	at := t.elen
	t.elen++
	*t.entry(at) = entry{k, v}
	if t.index != nil {
		t.link(k, at)
	}
	return nil
}

// link enters the position of a new key into the index.
func (t *Table) link(k Value, at uint32) {
	mask := t.ecap*2 - 1
	i := hashKey(k) & mask
	for *t.indexSlot(i) != 0 {
		i = (i + 1) & mask
	}
	*t.indexSlot(i) = at + 1
}

// rehash makes room for the new key k: it drops entries without value, moves
// integer keys to the array part when more than half of it would be in use,
// and otherwise doubles the list. It gives the size up to which all integer
// keys were moved.
func (t *Table) rehash(s *State, k Value) (int, error) {
	live := 0
	var ints [65]int // ints[b]: keys i with bits.Len(i-1) == b
	candidates := countInt(k, &ints)
	for i := uint32(0); i < t.elen; i++ {
		e := t.entry(i)
		if e.v.p != nil {
			live++
			candidates += countInt(e.k, &ints)
		}
	}
	size, moved := t.arraySize(candidates, &ints)
	if size > int(t.acap) {
		if err := t.growArray(s, size); err != nil {
			return 0, err
		}
	}
	return size, t.rebuild(s, live-moved+1, moved > 0)
}

// countInt counts a candidate for the array part.
func countInt(k Value, ints *[65]int) int {
	if i := k.int(); k.isInt() && i > 0 && i <= maxTable {
		ints[bits.Len64(uint64(i-1))]++
		return 1
	}
	return 0
}

// arraySize finds the largest power of two of which more than half would be
// in use, and how many of the entries (and the new key) move there.
func (t *Table) arraySize(candidates int, ints *[65]int) (size, moved int) {
	if candidates == 0 {
		return 0, 0
	}
	sum, used, at := 0, 0, uint64(0)
	for b := 0; b <= 30; b++ {
		n := 1 << b
		for ; at < min(uint64(n), uint64(t.alen)); at++ {
			if t.slot(at).p != nil {
				used++
			}
		}
		sum += ints[b]
		if n > int(t.alen) && sum > 0 && used+sum > n/2 {
			size, moved = n, sum
		}
	}
	return size, moved
}

// listSize returns the capacity for a list of n entries that has to be
// rebuilt. Rebuilding must pay for itself, so a quarter stays free.
func (t *Table) listSize(n int) int {
	size := int(t.ecap)
	switch {
	case n > size-size/4:
		size = 1 << bits.Len(uint(max(4, n, size*2)-1)) // an index needs a power of two
	case size > 8*smallTable && n < size/8:
		size = 1 << bits.Len(uint(2*n))
	}
	return size
}

// rebuild writes the entries that have values to a list with room for n, but
// first the integer keys that fit to the array part when move is set.
func (t *Table) rebuild(s *State, n int, move bool) error {
	old := unsafe.Slice((*entry)(t.ents), t.elen)
	if err := t.resizeEntries(s, t.listSize(n)); err != nil {
		return err
	}
	t.elen = 0
	for i := range old {
		e := &old[i]
		if e.v.p == nil {
			continue
		}
		if at := e.k.n - 1; move && e.k.isInt() && at < uint64(t.acap) {
			*t.slot(at) = e.v
			t.alen = max(t.alen, uint32(at)+1)
			continue
		}
		*t.entry(t.elen) = *e
		if t.index != nil {
			t.link(e.k, t.elen)
		}
		t.elen++
	}
	clear(unsafe.Slice((*entry)(t.ents), t.ecap)[t.elen:])
	if move && t.elen != 0 {
		t.migrate()
	}
	return nil
}

// resizeEntries gives t a list for size entries, without content unless it is the
// one t has, and an empty index.
func (t *Table) resizeEntries(s *State, size int) error {
	if size > maxTable {
		return errTableOverflow
	}
	if s != nil && size > int(t.ecap) {
		if err := s.alloc(entriesSize(uint32(size)) - entriesSize(t.ecap)); err != nil {
			return err
		}
	}
	if size != int(t.ecap) {
		t.makeEntries(uint32(size))
	} else if t.index != nil {
		clear(unsafe.Slice((*uint32)(t.index), 2*t.ecap))
	}
	return nil
}

// own gives a table that borrows a library's content its own copy.
func (t *Table) own() {
	t.bits &^= bitCopyOnWrite
	from := *t
	if t.acap > 0 {
		t.makeArray(t.acap)
		copy(unsafe.Slice((*Value)(t.arr), t.acap), unsafe.Slice((*Value)(from.arr), t.alen))
	}
	if t.elen > 0 && t.elen == t.ecap {
		// Most likely an entry is to be added.
		t.makeEntries(entryCap(int(t.ecap) + 1))
		t.copyEntries(&from)
		return
	}
	if t.ecap > 0 {
		t.makeEntries(t.ecap)
		copy(unsafe.Slice((*entry)(t.ents), t.ecap), unsafe.Slice((*entry)(from.ents), t.elen))
	}
	if from.index != nil {
		copy(unsafe.Slice((*uint32)(t.index), 2*t.ecap), unsafe.Slice((*uint32)(from.index), 2*t.ecap))
	}
}

// copyEntries fills t's empty list of entries, which has the room, with those
// of another table.
func (t *Table) copyEntries(from *Table) {
	t.flags = 0
	t.elen = from.elen
	copy(unsafe.Slice((*entry)(t.ents), t.ecap), unsafe.Slice((*entry)(from.ents), t.elen))
	if t.index == nil {
		return
	}
	for i := range t.elen {
		t.link(t.entry(i).k, i)
	}
}

// borrow returns a table that shows t's content and copies it before its
// first write. t itself must not change any more.
func (t *Table) borrow() *Table {
	c := *t
	c.id = 0
	c.bits = bitCopyOnWrite
	c.flags = 0
	return &c
}
