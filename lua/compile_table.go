package lua

import "unsafe"

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
