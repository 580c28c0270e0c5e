package lua

import (
	"fmt"
	"math"
	"unsafe"
)

const (
	upvalueSize  = int(unsafe.Sizeof(Upvalue{}))
	userdataSize = int(unsafe.Sizeof(Userdata{}))
)

// value reads any value but those that only entries of tables can have.
func (r *restorer) value() Value {
	n := r.uint()
	tag, n := n&(1<<tagBits-1), n>>tagBits
	switch tag {
	case tagConstant:
		return r.constant(n)
	case tagInt:
		return Int(int64(n>>1) ^ -int64(n&1))
	case tagString:
		return at(r, r.strings, n)
	case tagTable:
		return objectAt(r, r.tables, n)
	case tagFunction:
		return objectAt(r, r.functions, n)
	case tagUserdata:
		return objectAt(r, r.userdata, n)
	case tagThread:
		return objectAt(r, r.threads, n)
	case tagUpvalue:
		if u := at(r, r.upvalues, n); u != nil {
			return u.identity()
		}
		return Nil
	case tagHost:
		if name, ok := at(r, r.strings, n).AsString(); ok {
			return r.libraryFunction(name)
		}
		return Nil
	}
	r.fail(errReference)
	return Nil
}

func (r *restorer) constant(n uint64) Value {
	switch n {
	case constNil:
		return Nil
	case constFalse:
		return Bool(false)
	case constTrue:
		return Bool(true)
	case constFloat:
		return Float(math.Float64frombits(r.word()))
	case constInt:
		return Int(int64(r.word()))
	case constNull:
		return Null
	case constMain:
		return r.state.main.Value()
	}
	r.fail(errReference)
	return Nil
}

// at returns an element of a list, or the zero value and a failure.
func at[E any](r *restorer, list []E, n uint64) (e E) {
	if n >= uint64(len(list)) {
		r.fail(errReference)
		return e
	}
	return list[n]
}

func objectAt[E interface{ Value() Value }](r *restorer, list []E, n uint64) Value {
	if n >= uint64(len(list)) {
		r.fail(errReference)
		return Nil
	}
	return list[n].Value()
}

func (r *restorer) list() []Value {
	n := r.count(1)
	r.charge(n * int(valueSize))
	if n == 0 || r.failure != nil {
		return nil
	}
	values := make([]Value, n)
	for i := range values {
		values[i] = r.value()
	}
	return values
}

// table reads a table or nil.
func (r *restorer) table() *Table {
	v := r.value()
	if v.IsNil() {
		return nil
	}
	t, ok := v.AsTable()
	if !ok {
		r.corrupt("something else is in place of a table")
	}
	return t
}

// metatable reads a table or nil, for what can have that of Null.
func (r *restorer) metatable() *Table {
	if len(r.data) > 0 && uint64(r.data[0]) == constNullMetatable<<tagBits {
		r.data = r.data[1:]
		return nullMetatable()
	}
	return r.table()
}

func (r *restorer) id() uint32 {
	n := r.uint()
	if n > math.MaxUint32 {
		r.fail(errReference)
	}
	return uint32(n)
}

// readFunctionHeads makes the functions, without what they refer to.
func (r *restorer) readFunctionHeads() {
	n := r.count(1)
	r.charge(n * closureSize)
	for range n {
		if r.failure != nil {
			return
		}
		head := r.uint()
		if head&1 == 1 {
			name, _ := at(r, r.strings, head>>1).AsString()
			if f := r.hostFunction(name); f != nil {
				r.functions = append(r.functions, f.Bind())
			}
		} else if p := at(r, r.protos, head>>1); p != nil {
			r.functions = append(r.functions, newClosure(p))
		}
	}
}

func (r *restorer) readFunction(f *Function) {
	f.id = r.id()
	for i := range f.upvalues {
		f.upvalues[i] = at(r, r.upvalues, r.uint())
	}
	if f.host != nil {
		f.bound = r.list()
	}
}

func (r *restorer) readUpvalue(i int) {
	u := r.upvalues[i]
	u.id = r.id()
	if r.open[i] = r.bool(); !r.open[i] {
		u.close = r.value()
	}
}

func (r *restorer) readUserdata(u *Userdata) {
	u.id = r.id()
	kind := r.text()
	data := r.bytes()
	u.meta = r.metatable()
	u.values = r.list()
	if r.failure != nil || kind == "" {
		return
	}
	value, err := r.hostValue(kind, data)
	if err != nil {
		r.fail(err)
	}
	u.Data = value
}

// readTable completes a table.
func (r *restorer) readTable(t *Table) {
	flags := r.byte()
	t.id = r.id()
	meta := r.metatable()
	library := ""
	if flags&(tableBorrowed|tableBased) != 0 {
		library = r.text()
	}
	if flags&tableBorrowed != 0 {
		r.borrow(t, library)
	} else {
		var templates []*Table
		if flags&tableBased != 0 {
			if templates = templatesOf(r.opts.Libraries, library); len(templates) == 0 {
				r.missing(library)
			}
		}
		r.readContent(t, templates)
	}
	t.meta = meta
	t.MarkArray(flags&tableArray != 0)
}

// borrow makes t show the library of that name.
func (r *restorer) borrow(t *Table, library string) {
	templates := templatesOf(r.opts.Libraries, library)
	if len(templates) == 0 {
		r.missing(library)
		return
	}
	id := t.id
	*t = *templates[0].borrow()
	t.id = id
}

// readContent reads elements and entries. Templates are the libraries the
// table began as, whose entries it has unless they were removed.
func (r *restorer) readContent(t *Table, templates []*Table) {
	acap, alen := r.uint(), r.count(1)
	ecap, elen := r.uint(), r.count(1)
	if r.failure != nil {
		return
	}
	if !isCapacity(acap, alen) || !isCapacity(ecap, elen) || ecap > smallTable && ecap&(ecap-1) != 0 {
		r.corrupt("a table has an impossible size")
		return
	}
	r.makeRoom(t, int(acap), alen, int(ecap), elen)
	if r.failure != nil {
		return
	}
	for i := range uint64(alen) {
		*t.slot(i) = r.value()
	}
	t.alen = uint32(alen)
	t.trim()
	for range elen {
		r.readEntry(t, templates)
	}
	if templates != nil {
		r.addNew(t, templates)
	}
}

// isCapacity reports whether a part of a table that holds n values can have that
// capacity.
func isCapacity(capacity uint64, n int) bool { return capacity >= uint64(n) && capacity <= maxTable }

// makeRoom gives a table the capacity it had, which decides how it grows; but
// a table cannot claim much more than the snapshot has content.
func (r *restorer) makeRoom(t *Table, acap, alen, ecap, elen int) {
	spare := (acap-alen)*int(valueSize) + entriesSize(uint32(ecap)) - elen*int(entrySize)
	if spare > r.slack {
		acap, ecap = alen, int(entryCap(elen))
	} else {
		r.slack -= max(spare, 0)
	}
	r.charge(acap*int(valueSize) + entriesSize(uint32(ecap)))
	if r.failure == nil {
		t.makeArray(uint32(acap))
		t.makeEntries(uint32(ecap))
	}
}

func (r *restorer) readEntry(t *Table, templates []*Table) {
	k, isDead := r.key()
	if r.failure != nil {
		return
	}
	v := Nil
	if n := len(r.data); n > 0 && uint64(r.data[0]) == constInherited<<tagBits {
		r.data = r.data[1:]
		if v = inherited(templates, k); v.p == nil {
			r.fail(fmt.Errorf("the state uses %q of a library that lacks it", k.String()))
		}
	} else {
		v = r.value()
	}
	if isDead {
		v = Nil
	}
	if r.failure != nil {
		return
	}
	if k.isString() {
		k.n = uint64(k.str().hashed())
	}
	*t.entry(t.elen) = entry{k, v}
	if t.index != nil && !isDead {
		t.link(k, t.elen)
	}
	t.elen++
}

// key reads the key of an entry.
func (r *restorer) key() (k Value, isDead bool) {
	if len(r.data) > 0 && uint64(r.data[0]) == constDeadKey<<tagBits {
		r.data = r.data[1:]
		return deadKey.identity(), true
	}
	k = r.value()
	if k.isFloat() {
		if _, isInt := floatToInt(k.float()); isInt || math.IsNaN(k.float()) {
			r.corrupt("a table has an impossible key")
		}
	}
	if k.p == nil {
		r.corrupt("a table has an impossible key")
	}
	return k, false
}

// addNew gives a changed library table what the library has got since, that
// is, what the table neither has nor had removed.
func (r *restorer) addNew(t *Table, templates []*Table) {
	removed := map[string]bool{}
	for _, k := range r.list() {
		if s, ok := k.AsString(); ok {
			removed[s] = true
		}
	}
	for _, template := range templates {
		for k, v := range template.All() {
			if s, ok := k.AsString(); ok && !removed[s] && t.get(k).p == nil {
				_ = t.setStr(nil, k.str(), v)
			}
		}
	}
}

func (r *restorer) readState() {
	s := r.state
	s.globals, s.loaded = r.table(), r.table()
	s.preload, s.registry = r.table(), r.table()
	for i := range s.metas {
		s.metas[i] = r.table()
	}
	s.nextFunction = r.value()
	s.gc.finalizable = r.finalizable()
	s.gc.pending = r.finalizable()
	s.main.id = r.id()
	s.main.setHook(r.readHook())
	s.lastID = r.id()
	for i := range s.random {
		s.random[i] = r.word()
	}
	g := &s.gcSettings
	g.pause, g.stepmul = r.int(), r.int()
	g.generational = r.bool()
	s.gc.usesWeak, s.gc.stopped = r.bool(), r.bool()
	s.warnings.on = r.bool()
	s.warnings.partial.Write(r.bytes())
	if r.failure == nil && (s.globals == nil || s.loaded == nil) {
		r.corrupt("it lacks its globals")
	}
	s.account.memory = int64(r.size)
}

// finalizable reads a list of objects with finalizers.
func (r *restorer) finalizable() []Value {
	list := r.list()
	for _, v := range list {
		if k := v.Kind(); k != KindTable && k != KindUserdata || (*header)(v.p).bits&bitShared != 0 {
			r.corrupt("something that has no finalizer waits for it")
			return nil
		}
		(*header)(v.p).bits |= bitFinalizer
	}
	return list
}
