package script

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// preludeName is the prefix of the chunk names of our preludes, so that their frames can
// be left out of stacks. The bracket tells the engine that they belong to the host: they
// leave the script's own line on the stack.
const preludeName = "[luanette:"

// private is the prefix of globals that only preludes may use. They are removed before a
// script runs.
const private = "__"

// preludes are the parts of modules that are written in Lua. Running them is most of the
// cost of a fresh state, so a state runs only those whose globals its script can use.
// Which globals those are is determined once, by running them.
type preludes struct {
	protos []*lua.Proto // in the order of the modules
	makers map[string]preludeSet
	all    preludeSet
	always preludeSet // what every state needs
	hidden []string   // the private globals
	// globals are the names that every script has.
	globals []string
}

// preludeSet is a set of preludes, one bit each.
type preludeSet uint64

// privacy is in a set if private globals must be removed.
const privacy preludeSet = 1 << 63

func newPreludes(modules []host.Module, libraries []*lua.Library) (*preludes, error) {
	p := &preludes{makers: map[string]preludeSet{}, all: privacy}
	state := lua.New(lua.Options{})
	if err := state.Open(libraries...); err != nil {
		return nil, err
	}
	for i := range modules {
		if modules[i].Lua == "" {
			continue
		}
		if err := p.add(state, &modules[i]); err != nil {
			return nil, fmt.Errorf("prelude of %s: %w", moduleTitle(&modules[i]), err)
		}
	}
	p.complete()
	for key := range state.Globals().All() {
		if name, _ := key.AsString(); strings.HasPrefix(name, private) {
			p.hidden = append(p.hidden, name)
		} else {
			p.globals = append(p.globals, name)
		}
	}
	return p, nil
}

// moduleTitle returns the module's name, or its first function's for globals.
func moduleTitle(m *host.Module) string {
	if m.Name != "" {
		return m.Name
	}
	return strings.TrimLeft(m.Funcs[0].Name, "_")
}

// add runs a module's prelude after the earlier ones and records which globals it sets
// or changes: a script that uses one of them needs the prelude.
func (p *preludes) add(state *lua.State, m *host.Module) error {
	proto, err := state.Compile(m.Lua, "="+preludeName+moduleTitle(m)+"]")
	if err != nil {
		return err
	}
	set := preludeSet(1) << len(p.protos)
	p.protos = append(p.protos, proto)
	before := copyGlobals(state.Globals())
	if err := p.run(context.Background(), state, proto); err != nil {
		return err
	}
	for _, name := range before.changes(copyGlobals(state.Globals())) {
		p.makers[name] |= set
		if name == "string" { // every string value refers to it
			p.always |= set
		}
	}
	p.all |= set
	return nil
}

// complete adds the preludes that the preludes of each global need in turn.
func (p *preludes) complete() {
	for changed := true; changed; {
		changed = false
		for name, set := range p.makers {
			whole := set
			for i, proto := range p.protos {
				if set&(1<<i) != 0 {
					whole |= p.neededBy(proto) &^ privacy
				}
			}
			if whole != set {
				p.makers[name] = whole
				changed = true
			}
		}
	}
	for i, proto := range p.protos {
		if p.always&(1<<i) != 0 {
			p.always |= p.neededBy(proto) &^ privacy
		}
	}
}

// open runs the preludes of a set in a fresh state.
func (p *preludes) open(ctx context.Context, state *lua.State, set preludeSet) error {
	for i := range p.protos {
		if set&(1<<i) == 0 {
			continue
		}
		if err := p.run(ctx, state, p.protos[i]); err != nil {
			return err
		}
	}
	if set&privacy != 0 {
		for _, name := range p.hidden {
			state.Globals().SetString(name, lua.Nil)
		}
	}
	return nil
}

func (p *preludes) run(ctx context.Context, state *lua.State, prelude *lua.Proto) error {
	_, err := state.Call(ctx, state.Instantiate(prelude, state.Globals().Value()).Value())
	return err
}

// neededBy returns the preludes that code can use: all of them if it can access globals
// without naming them.
func (p *preludes) neededBy(code *lua.Proto) preludeSet {
	set := p.always
	named := code.Globals(func(name string) {
		switch name {
		case "_G", "load", "require":
			set |= p.all
		default:
			set |= p.makers[name]
		}
		if strings.HasPrefix(name, private) {
			set |= privacy
		}
	})
	if !named {
		set |= p.all
	}
	return set
}

// globalsCopy is a copy of the globals: each with its value, and with its fields if it is a
// table.
type globalsCopy map[string]globalCopy

type globalCopy struct {
	value, meta lua.Value
	fields      map[any]lua.Value // by text, or by the value of other keys
}

func copyGlobals(globals *lua.Table) globalsCopy {
	p := globalsCopy{}
	for key, value := range globals.All() {
		name, _ := key.AsString()
		one := globalCopy{value: value}
		if t, ok := value.AsTable(); ok && t != globals {
			one.fields = map[any]lua.Value{}
			for k, v := range t.All() {
				if text, ok := k.AsString(); ok {
					one.fields[text] = v
				} else {
					one.fields[k] = v
				}
			}
			if meta := t.Metatable(); meta != nil {
				one.meta = meta.Value()
			}
		}
		p[name] = one
	}
	return p
}

// changes lists the globals that are different, missing or new in later.
func (p globalsCopy) changes(later globalsCopy) []string {
	var names []string
	for name, was := range p {
		if is, ok := later[name]; !ok || !was.same(is) {
			names = append(names, name)
		}
	}
	for name := range later {
		if _, ok := p[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

func (p globalCopy) same(other globalCopy) bool {
	return p.value == other.value && p.meta == other.meta && maps.Equal(p.fields, other.fields)
}
