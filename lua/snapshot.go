package lua

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"unsafe"
)

// Snapshot writes a state in which no call is running to w, so that [Restore]
// can bring it back, also in another process: everything that Fork copies,
// with the code of functions. Host functions are saved by their names,
// untouched library tables by theirs, changed ones by what was changed.
// Budgets, usage, Options and what State.Store keeps belong to the host and are
// not saved.
//
// What cannot be saved is a userdata whose Data is neither nil nor a [Saver],
// and a host function without a name. Snapshot then writes nothing and returns
// a [TransferError] that tells where it is.
//
// Equal states give equal bytes.
func (s *State) Snapshot(w io.Writer) error {
	left, err := s.snapshot(w, true)
	if err == nil && len(left) > 0 {
		err = left[0]
	}
	if err != nil {
		return fmt.Errorf("saving a state: %w", err)
	}
	return nil
}

// SnapshotPartial is Snapshot, but it saves nil in place of what cannot be
// saved and returns where that was.
func (s *State) SnapshotPartial(w io.Writer) ([]*TransferError, error) {
	left, err := s.snapshot(w, false)
	if err != nil {
		return nil, fmt.Errorf("saving a state: %w", err)
	}
	return left, nil
}

// snapshot writes the state and returns what it left out; a strict one writes
// nothing if there is such a thing.
func (s *State) snapshot(w io.Writer, strict bool) ([]*TransferError, error) {
	if !s.atRest() {
		return nil, errBusy
	}
	v := newSurvey(s)
	v.run()
	if len(v.problems) > 0 && strict {
		return v.leftOut()[:1], nil
	}
	e := &snapshotWriter{survey: v}
	e.buf = append(e.buf, snapshotMagic...)
	e.buf = append(e.buf, snapshotVersion, byte(opTrap))
	e.body()
	sum := crc32.Checksum(e.buf, crc32.MakeTable(crc32.Castagnoli))
	e.buf = append(e.buf, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	if _, err := w.Write(e.buf); err != nil {
		return nil, err
	}
	return v.leftOut(), nil
}

// survey finds everything there is to save and numbers it.
type survey struct {
	state   *State
	numbers map[unsafe.Pointer]int // of all objects, each in its list

	functions []*Function
	upvalues  []*Upvalue
	tables    []*Table
	userdata  []*savedUserdata
	threads   []*Thread
	protos    []*Proto
	strings   []string
	texts     map[string]int // positions in strings
	// bases are the names of the libraries that tables began as.
	bases map[*Table]string
	// problems are the objects that cannot be saved.
	problems []problem
	omitted  map[unsafe.Pointer]bool
	// done is how far each list was looked through.
	done struct{ functions, upvalues, tables, userdata, threads int }
}

// savedUserdata is a userdata and the form of its Data.
type savedUserdata struct {
	*Userdata
	kind string
	data []byte
}

type problem struct {
	object Value
	text   string
}

func newSurvey(s *State) *survey {
	v := &survey{
		state: s, numbers: map[unsafe.Pointer]int{}, texts: map[string]int{}, bases: map[*Table]string{},
		omitted: map[unsafe.Pointer]bool{},
	}
	for _, l := range s.libs {
		v.text(l.name)
		if l.name == "" {
			v.bases[s.globals] = ""
		} else if t, ok := s.loaded.GetString(l.name).AsTable(); ok {
			v.bases[t] = l.name
		}
		if m := s.metas[KindString]; l == StringLib && m != nil {
			v.bases[m] = stringMetamethods.name
		}
	}
	return v
}

// leftOut tells where the problems are.
func (v *survey) leftOut() []*TransferError {
	if len(v.problems) == 0 {
		return nil
	}
	paths := v.state.newPathFinder()
	var list []*TransferError
	for _, p := range v.problems {
		list = append(list, &TransferError{Path: paths.path(p.object), Problem: p.text})
	}
	return list
}

func (v *survey) run() {
	s := v.state
	v.table(s.globals)
	v.table(s.loaded)
	v.table(s.preload)
	v.table(s.registry)
	for _, m := range s.metas {
		v.table(m)
	}
	v.value(s.nextFunction)
	v.list(s.gc.finalizable)
	v.list(s.gc.pending)
	v.hook(s.main.hook)
	for v.more() {
	}
}

// more looks through the objects that were found, and reports whether there
// were any.
func (v *survey) more() bool {
	d := &v.done
	before := *d
	for ; d.tables < len(v.tables); d.tables++ {
		v.walkTable(v.tables[d.tables])
	}
	for ; d.functions < len(v.functions); d.functions++ {
		v.walkFunction(v.functions[d.functions])
	}
	for ; d.upvalues < len(v.upvalues); d.upvalues++ {
		v.walkUpvalue(v.upvalues[d.upvalues])
	}
	for ; d.userdata < len(v.userdata); d.userdata++ {
		u := v.userdata[d.userdata]
		v.text(u.kind)
		v.metatable(u.meta)
		v.list(u.values)
	}
	for ; d.threads < len(v.threads); d.threads++ {
		v.walkThread(v.threads[d.threads])
	}
	return *d != before
}

func (v *survey) list(values []Value) {
	for _, x := range values {
		v.value(x)
	}
}

func (v *survey) table(t *Table) {
	if t != nil {
		v.value(t.Value())
	}
}

func (v *survey) hook(h *hook) {
	if h != nil {
		v.value(h.fn)
	}
}

func (v *survey) text(s string) {
	if _, ok := v.texts[s]; !ok {
		v.texts[s] = len(v.strings)
		v.strings = append(v.strings, s)
	}
}

// value notes what x refers to.
func (v *survey) value(x Value) {
	switch x.Kind() {
	case KindNil, KindBool, KindInt, KindFloat:
		return
	case KindString:
		v.text(x.str().s)
		return
	case KindFunction:
		if host := x.function().host; host != nil {
			v.text(host.name)
		}
	}
	if _, ok := v.numbers[x.p]; ok || v.omitted[x.p] || x.p == unsafe.Pointer(v.state.main) {
		return
	}
	if (*header)(x.p).bits&bitShared == 0 {
		v.found(x)
	} else if x.isTable() {
		v.omit(x, errors.New("a table that all states share cannot be saved"))
	}
}

// metatable notes a metatable, which may be that of Null.
func (v *survey) metatable(t *Table) {
	if t != nil && t.bits&bitShared == 0 {
		v.value(t.Value())
	}
}

// found numbers an object met for the first time.
func (v *survey) found(x Value) {
	switch x.Kind() {
	case KindTable:
		v.numbers[x.p] = len(v.tables)
		v.tables = append(v.tables, x.table())
	case KindFunction:
		f := x.function()
		if f.host != nil && f.host.name == "" {
			v.omit(x, errors.New("a host function without a name cannot be saved"))
			return
		}
		v.numbers[x.p] = len(v.functions)
		v.functions = append(v.functions, f)
	case kindLight:
		v.numbers[x.p] = len(v.upvalues)
		v.upvalues = append(v.upvalues, (*Upvalue)(x.p))
	case KindThread:
		v.numbers[x.p] = len(v.threads)
		v.threads = append(v.threads, (*Thread)(x.p))
	case KindUserdata:
		u := (*Userdata)(x.p)
		kind, data, err := saveData(u.Data)
		if err != nil {
			v.omit(x, err)
			return
		}
		v.numbers[x.p] = len(v.userdata)
		v.userdata = append(v.userdata, &savedUserdata{u, kind, data})
	}
}

func (v *survey) omit(x Value, err error) {
	v.omitted[x.p] = true
	v.problems = append(v.problems, problem{x, err.Error()})
}

func (v *survey) walkTable(t *Table) {
	v.metatable(t.meta)
	if name, ok := v.borrowed(t); ok {
		v.text(name)
		return
	}
	if name, ok := v.bases[t]; ok {
		v.text(name)
		v.list(v.removedFrom(t, name))
	}
	for i := range uint64(t.alen) {
		v.value(*t.slot(i))
	}
	for i := range t.elen {
		e := t.entry(i)
		if e.v.p == nil && (*header)(e.k.p).kind > KindString {
			continue // it matters only if something else has the key
		}
		v.value(e.key())
		v.value(e.v)
	}
}

// borrowed tells which library a table shows without having changed it.
func (v *survey) borrowed(t *Table) (string, bool) {
	if t.bits&bitCopyOnWrite == 0 {
		return "", false
	}
	for _, l := range v.state.libs {
		if t.ents == l.template.ents && l.name != "" {
			return l.name, true
		}
		for _, c := range l.companions().libraries {
			if t.ents == c.template.ents {
				return c.name, true
			}
		}
	}
	return "", false
}

// removedFrom returns the keys of a library that the table made of it does
// not have any more.
func (v *survey) removedFrom(t *Table, library string) []Value {
	var keys []Value
	for _, template := range templatesOf(v.state.libs, library) {
		for k := range template.All() {
			if t.get(k).p == nil {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// templatesOf returns the tables of the libraries of that name, companions
// included.
func templatesOf(libs []*Library, name string) []*Table {
	var list []*Table
	for _, l := range libs {
		if l.name == name {
			list = append(list, l.template)
		}
		for _, c := range l.companions().libraries {
			if c.name == name {
				list = append(list, c.template)
			}
		}
	}
	return list
}

// inherited returns what the first of the templates that has the key has.
func inherited(templates []*Table, k Value) Value {
	for _, t := range templates {
		if x := t.get(k); x.p != nil {
			return x
		}
	}
	return Nil
}

func (v *survey) walkFunction(f *Function) {
	if f.proto != nil {
		v.proto(f.proto)
	}
	for _, u := range f.upvalues {
		v.value(u.identity())
	}
	v.list(f.bound)
}

func (v *survey) walkUpvalue(u *Upvalue) {
	if u.isOpen() && u.thread != v.state.main {
		v.value(u.thread.Value())
		return
	}
	v.value(*u.v)
}

// proto numbers compiled functions, inner ones first.
func (v *survey) proto(p *Proto) {
	if _, ok := v.numbers[unsafe.Pointer(p)]; ok {
		return
	}
	for _, q := range p.protos {
		v.proto(q)
	}
	v.text(p.source)
	v.list(p.constants)
	for i := range p.upvalues {
		v.text(p.upvalues[i].name)
	}
	for i := range p.locals {
		v.text(p.locals[i].name)
	}
	v.numbers[unsafe.Pointer(p)] = len(v.protos)
	v.protos = append(v.protos, p)
}

func (v *survey) walkThread(t *Thread) {
	v.list(t.stack[:t.used()])
	v.value(t.failure)
	v.hook(t.hook)
	for u := t.open; u != nil; u = u.next {
		v.value(u.identity())
	}
}
