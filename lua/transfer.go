package lua

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unsafe"
)

// Forker is what the Data of a userdata implements to be copied by
// [State.Fork], and what values kept by [State.Store] implement to be carried
// into the fork. The copy must not share anything with the original that
// either of them changes; a value that never changes may return itself.
type Forker interface {
	Fork() (any, error)
}

// Saver is what the Data of a userdata implements to be part of a snapshot.
// Kind names the function in [RestoreOptions] that makes the value again out
// of data.
type Saver interface {
	Save() (kind string, data []byte, err error)
}

// TransferError tells which part of a state cannot be forked or saved.
type TransferError struct {
	// Path leads to the part, as in "globals.tracks[2].file".
	Path string
	// Problem says what it is and why it stays behind.
	Problem string
}

// Error gives path and problem.
func (e *TransferError) Error() string { return e.Path + ": " + e.Problem }

// Registry returns a table for the host: scripts reach it only through
// debug.getregistry, and forks and snapshots carry what is in it, so that a
// host finds its functions and coroutines again.
func (s *State) Registry() *Table { return s.registryTable() }

var errBusy = errors.New("a call is running in it")

// atRest reports whether no call is running, so that nothing of the state is
// on a Go stack.
func (s *State) atRest() bool {
	return s.cur == s.main && len(s.main.frames) == 0 && s.depth == 0 && !s.gc.running && !s.gc.finalizing
}

// forkData copies the host's value of a userdata for the state to.
func forkData(data any, to *State) (any, error) {
	switch d := data.(type) {
	case nil, bool, int, int64, uint64, float64, string:
		return data, nil
	case *stream:
		return d.forkFor(to)
	case Forker:
		return d.Fork()
	}
	return nil, fmt.Errorf("a userdata of type %T cannot be forked", data)
}

// saveData gives the kind and the content of a userdata for a snapshot.
func saveData(data any) (kind string, content []byte, err error) {
	switch d := data.(type) {
	case nil:
		return "", nil, nil
	case Saver:
		return d.Save()
	}
	return "", nil, fmt.Errorf("a userdata of type %T cannot be saved", data)
}

// companions are what a library hands out without having it in its table:
// iterators, methods, searchers. A saved state may refer to them wherever it
// may refer to the library.
type companions struct {
	functions []companion
	libraries []*Library
	// userdata makes the Go values of the library's userdata again, by kind.
	userdata map[string]func(s *State, data []byte) (any, error)
	// attach gives a restored state what the library's functions rely on.
	attach func(s *State)
}

// companion is a function that is bound to values. Accepts checks values that
// come from outside: the function itself relies on what its library bound.
type companion struct {
	function *Function
	accepts  func(bound []Value) bool
}

func (l *Library) companions() companions {
	switch l {
	case Base:
		return companions{functions: []companion{{ipairsIterator, isUnbound}}}
	case CoroutineLib:
		return companions{functions: []companion{{wrapped, bindsThread}}}
	case StringLib:
		return companions{
			functions: []companion{{gmatchIterator, bindsMatch}},
			libraries: []*Library{stringMetamethods},
		}
	case UTF8Lib:
		return companions{functions: []companion{{utf8Strict, isUnbound}, {utf8Lax, isUnbound}}}
	case Package, PackageFiles:
		return l.searchers()
	case IOLib:
		return companions{
			functions: []companion{{linesIterator, bindsFile}},
			libraries: []*Library{fileMethods, fileMetamethods},
			userdata:  map[string]func(*State, []byte) (any, error){streamKind: restoreStream},
			attach:    attachFiles,
		}
	}
	return companions{}
}

// searchers are the functions behind require.
func (l *Library) searchers() companions {
	c := companions{
		functions: []companion{
			{requireFunction, bindsTable}, {preloadSearcher, bindsTable}, {loaderSearcher, bindsTable},
		},
		attach: func(s *State) {
			if s.preload == nil {
				s.preload = NewTable(0, 0)
			}
		},
	}
	if l == PackageFiles {
		c.functions = append(c.functions, companion{fileSearcher, bindsTable}, companion{nativeSearcher, bindsTable})
	}
	return c
}

func isUnbound(bound []Value) bool   { return len(bound) == 0 }
func bindsTable(bound []Value) bool  { return len(bound) == 1 && bound[0].isTable() }
func bindsThread(bound []Value) bool { return len(bound) == 1 && bound[0].Kind() == KindThread }

// bindsMatch checks subject, pattern, position and end of the last match.
func bindsMatch(bound []Value) bool {
	if len(bound) != 4 || !bound[0].isString() || !bound[1].isString() || !bound[2].isInt() || !bound[3].isInt() {
		return false
	}
	return bound[2].int() >= 0 && bound[2].int() <= int64(len(bound[0].str().s))+1
}

// bindsFile checks the file of lines, whether to close it, and the formats.
func bindsFile(bound []Value) bool { return len(bound) >= 2 && isStream(bound[0]) }

func isStream(v Value) bool {
	u, ok := v.AsUserdata()
	if !ok {
		return false
	}
	_, ok = u.Data.(*stream)
	return ok
}

// attachFiles prepares a restored state for the functions of io: a list of
// open files, and default files in the registry.
func attachFiles(s *State) {
	s.Store(openFilesKey{}, openFiles{})
	registry := s.registryTable()
	if !registry.GetString(fileMetaKey).isTable() {
		registry.SetString(fileMetaKey, fileMetamethods.template.borrow().Value())
	}
	if !isStream(registry.GetString(inputKey)) {
		registry.SetString(inputKey, s.newFile(newInputStream(s.stdin())))
	}
	if !isStream(registry.GetString(outputKey)) {
		registry.SetString(outputKey, s.newFile(newOutputStream(s.stdout())))
	}
}

// pathFinder looks for ways to objects, for messages: breadth first from the
// roots, so that it finds short ones.
type pathFinder struct {
	state *State
	// from tells of every object found how it was reached.
	from  map[unsafe.Pointer]step
	queue []Value
}

// step leads from one object to the next.
type step struct {
	owner Value
	label string
}

// stuckAt returns the error about an object that cannot be transferred.
func (s *State) stuckAt(v Value, problem string) *TransferError {
	return &TransferError{Path: s.newPathFinder().path(v), Problem: problem}
}

// newPathFinder finds the ways to all objects of a state.
func (s *State) newPathFinder() *pathFinder {
	p := &pathFinder{state: s, from: map[unsafe.Pointer]step{}}
	p.root("globals", s.globals)
	p.root("loaded modules", s.loaded)
	p.root("preloaded modules", s.preload)
	p.root("registry", s.registry)
	for kind, m := range s.metas {
		p.root("metatable of "+Kind(kind).Type()+" values", m)
	}
	for _, v := range s.gc.finalizable {
		p.visit(Nil, "objects with finalizers", v)
	}
	for _, v := range s.gc.pending {
		p.visit(Nil, "objects to be finalized", v)
	}
	if h := s.main.hook; h != nil {
		p.visit(Nil, "hook", h.fn)
	}
	for len(p.queue) > 0 {
		v := p.queue[0]
		p.queue = p.queue[1:]
		p.expand(v)
	}
	return p
}

// path names the way to v.
func (p *pathFinder) path(v Value) string {
	var labels []string
	for {
		s, ok := p.from[v.p]
		if !ok {
			return "state"
		}
		labels = append(labels, s.label)
		if s.owner.p == nil {
			break
		}
		v = s.owner
	}
	var b strings.Builder
	for i := len(labels) - 1; i >= 0; i-- {
		b.WriteString(labels[i])
	}
	return b.String()
}

func (p *pathFinder) root(name string, t *Table) {
	if t != nil {
		p.visit(Nil, name, t.Value())
	}
}

func (p *pathFinder) visit(owner Value, label string, v Value) {
	if v.Kind() < KindTable || !v.isTable() && (*header)(v.p).bits&bitShared != 0 {
		return
	}
	if _, ok := p.from[v.p]; ok {
		return
	}
	p.from[v.p] = step{owner, label}
	p.queue = append(p.queue, v)
}

func (p *pathFinder) expand(v Value) {
	switch v.Kind() {
	case KindTable:
		p.expandTable(v, v.table())
	case KindFunction:
		p.expandFunction(v, v.function())
	case KindUserdata:
		u := (*Userdata)(v.p)
		for i, x := range u.values {
			p.visit(v, fmt.Sprintf("(user value %d)", i+1), x)
		}
		if u.meta != nil {
			p.visit(v, "(metatable)", u.meta.Value())
		}
	case KindThread:
		p.expandThread(v, (*Thread)(v.p))
	case kindLight:
		p.visit(v, "(variable)", *(*Upvalue)(v.p).v)
	}
}

func (p *pathFinder) expandTable(v Value, t *Table) {
	for k, x := range t.All() {
		p.visit(v, keyLabel(k), x)
		p.visit(v, "(key)", k)
	}
	if t.meta != nil {
		p.visit(v, "(metatable)", t.meta.Value())
	}
}

func keyLabel(k Value) string {
	switch name, isString := k.AsString(); {
	case isString && isIdentifier(name):
		return "." + name
	case isString:
		return fmt.Sprintf("[%q]", name)
	}
	return "[" + k.String() + "]"
}

func (p *pathFinder) expandFunction(v Value, f *Function) {
	for i, u := range f.upvalues {
		p.visit(v, "(upvalue "+f.upvalueName(i)+")", *u.v)
		if u.isOpen() {
			p.visit(v, "(coroutine of upvalue "+f.upvalueName(i)+")", u.thread.Value())
		}
	}
	for i, x := range f.bound {
		p.visit(v, fmt.Sprintf("(value %d)", i+1), x)
	}
}

func (p *pathFinder) expandThread(v Value, t *Thread) {
	for i := range t.frames {
		f := &t.frames[i]
		proto := t.function(f).proto
		if proto == nil {
			continue
		}
		for reg := range int(proto.maxStack) {
			if name, ok := proto.localIn(reg, int(f.pc)); ok {
				p.visit(v, "(local "+name+")", t.stack[int(f.fn)+1+reg])
			}
		}
	}
	for _, x := range t.stack[:t.used()] {
		p.visit(v, "(stack)", x)
	}
	p.visit(v, "(error)", t.failure)
	if t.hook != nil {
		p.visit(v, "(hook)", t.hook.fn)
	}
}

// streamKind is the kind of files in snapshots. Only standard streams and
// closed files can be carried: an open file belongs to one state.
const streamKind = "io.stream"

// The standard streams by what they are saved as.
const (
	streamInput  = "stdin"
	streamOutput = "stdout"
	streamError  = "stderr"
	streamClosed = "closed"
)

// forkFor gives the state to a stream of its own in place of s.
func (s *stream) forkFor(to *State) (*stream, error) {
	switch {
	case s.closed:
		return &stream{closed: true, finish: s.finish}, nil
	case s.finish != nil:
		return nil, errors.New("an open file cannot be forked")
	case s.in != nil:
		return newInputStream(to.stdin()), nil
	}
	c := newOutputStream(s.direct)
	c.flushes, c.errors = s.flushes, s.errors
	return c, nil
}

// Save gives the form of s in a snapshot.
func (s *stream) Save() (kind string, data []byte, err error) {
	switch {
	case s.closed:
		return streamKind, []byte(streamClosed), nil
	case s.finish != nil:
		return "", nil, errors.New("an open file cannot be saved")
	case s.in != nil:
		return streamKind, []byte(streamInput), nil
	case s.errors:
		return streamKind, []byte(streamError), nil
	}
	return streamKind, []byte(streamOutput), nil
}

// restoreStream makes a stream of s out of its form in a snapshot.
func restoreStream(s *State, data []byte) (any, error) {
	switch string(data) {
	case streamInput:
		return newInputStream(s.stdin()), nil
	case streamOutput:
		return newOutputStream(s.stdout()), nil
	case streamError:
		return newErrorStream(s.stderr()), nil
	case streamClosed:
		return &stream{closed: true, finish: func(error) []Value { return nil }}, nil
	}
	return nil, fmt.Errorf("unknown stream %q", data)
}

// newErrorStream wraps the host's error output.
func newErrorStream(w io.Writer) *stream {
	s := newOutputStream(w)
	s.errors = true
	return s
}

// Fork gives the list of a state that has opened no files yet.
func (openFiles) Fork() (any, error) { return openFiles{}, nil }
