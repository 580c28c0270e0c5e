package lua

import "slices"

// Library is a set of host functions that states open together. A library is
// built once, never changes afterwards, and is shared by all states: opening
// it copies nothing until a script changes the library's table.
type Library struct {
	// name is the global the library is reachable by; "" puts the functions
	// among the globals.
	name     string
	key      *Str // the name, as a key of tables
	template *Table
	setup    func(s *State, t *Table) error
}

// Reg names a function of a library.
type Reg struct {
	Name string
	Fn   Func
}

// Const names a constant of a library, such as math.pi.
type Const struct {
	Name  string
	Value Value
}

// NewLibrary returns a library reachable as the global name, or whose
// functions are globals when name is "". Functions are registered as
// "name.function". Setup, which may be nil, runs each time a state opens the
// library and may put into t what is particular to the state.
func NewLibrary(name string, funcs []Reg, consts []Const, setup func(s *State, t *Table) error) *Library {
	room := len(funcs) + len(consts)
	if setup != nil {
		room += setupRoom
	}
	t := NewTable(0, room)
	for i, r := range funcs {
		full := r.Name
		if name != "" {
			full = name + "." + r.Name
		}
		f := NewFunc(full, r.Fn)
		f.host.builtin = builtins[full]
		f.bits |= bitShared
		f.id = libraryID(full, i)
		_ = t.setStr(nil, newConstant(r.Name), f.Value())
	}
	for _, c := range consts {
		v := c.Value
		if s, ok := v.AsString(); ok {
			v = newConstant(s).value()
		}
		_ = t.setStr(nil, newConstant(c.Name), v)
	}
	return &Library{name: name, key: newConstant(name), template: t, setup: setup}
}

// setupRoom is the room that tables of libraries have for what setup adds.
const setupRoom = 3

// setupNames are the keys under which libraries put what is particular to a
// state. States share them as they share the names of functions.
var setupNames = func() map[string]*Str {
	names := map[string]*Str{}
	for _, name := range []string{"_G", "require", "loaded", "preload", "searchers", "stdin", "stdout", "stderr"} {
		names[name] = newConstant(name)
	}
	return names
}()

// newShared returns a host function that libraries hand to all states without
// having it in their tables.
func newShared(name string, fn Func) *Function {
	f := NewFunc(name, fn)
	f.bits |= bitShared
	f.id = libraryID(name, 0)
	return f
}

// libraryID numbers library functions the same way in every process, far
// above the numbers states give out.
func libraryID(name string, i int) uint32 {
	h := uint32(2166136261)
	for _, c := range []byte(name) {
		h = (h ^ uint32(c)) * 16777619
	}
	return 0x80000000 | h&0x7fffff00 | uint32(i&0xff)
}

// Name returns the global the library is reachable by, or "" for globals.
func (l *Library) Name() string { return l.name }

// Function returns a function of the library by its short name.
func (l *Library) Function(name string) (*Function, bool) {
	return l.template.GetString(name).AsFunction()
}

// Open makes libraries available to scripts of s.
func (s *State) Open(libs ...*Library) error {
	s.libs = slices.Grow(s.libs, len(libs))
	if s.globals.elen == 0 {
		s.globals.makeEntries(entryCap(countGlobals(libs)))
	}
	for _, l := range libs {
		if err := s.open(l); err != nil {
			return err
		}
	}
	return nil
}

// countGlobals returns how many global variables libraries need.
func countGlobals(libs []*Library) int {
	n := setupRoom
	for _, l := range libs {
		if l.name == "" {
			n += int(l.template.elen)
		} else {
			n++
		}
	}
	return n
}

func (s *State) open(l *Library) error {
	s.libs = append(s.libs, l)
	t := s.globals
	if l.name != "" {
		t = l.template.borrow()
		if err := s.globals.setStr(s, l.key, t.Value()); err != nil {
			return err
		}
		if err := s.loaded.setStr(s, l.key, t.Value()); err != nil {
			return err
		}
	} else if t.elen == 0 && t.ecap >= l.template.elen {
		t.copyEntries(l.template)
	} else {
		for k, v := range l.template.All() {
			if err := t.set(s, k, v); err != nil {
				return err
			}
		}
	}
	if l.setup != nil {
		return l.setup(s, t)
	}
	return nil
}

// Sandboxed returns the libraries that touch nothing outside the state.
func Sandboxed() []*Library {
	return []*Library{Base, CoroutineLib, TableLib, StringLib, MathLib, UTF8Lib, DebugSafe, Package}
}

// All returns every library, including those that reach files, the
// environment and the internals of the state.
func All() []*Library {
	return []*Library{
		Base, BaseFiles, PackageFiles, CoroutineLib, TableLib, IOLib, OSLib, StringLib, MathLib, UTF8Lib, DebugLib,
	}
}
