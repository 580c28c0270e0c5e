// Package host is what a script may reach, written once in Go and bound by every
// engine. A Module is a named set of functions with its documentation; an Env is
// the world of one run. Whatever a script does to the world goes through the
// Env's Door, which can do it, record it, rehearse it or answer it from a
// journal; nothing a script can call goes round it.
package host

import (
	"context"
	"encoding/json"
)

// Value is what crosses between a script and the host, always as a copy: nil,
// bool, int64, float64, string (any bytes), or json.RawMessage for a table.
type Value = any

// Module is a global of scripts. Functions that must touch the script's own
// tables in place, or take functions, live in its preludes; Go gives only what
// scripts cannot do.
type Module struct {
	Name  string // the global; "" makes the functions globals themselves
	Page  string // Markdown: what help shows, one "## name" section per function
	Funcs []Func
	Lua   string // run in a Lua state whose script can touch what it makes; globals "__…" are for preludes only
	JS    string // the same for JavaScript: an expression, a function of the module's object and of an object with all functions

	LuaOnly bool // JavaScript has its own for it
}

// Func is the module's function of that name, or nil.
func (m *Module) Func(name string) *Func {
	for i := range m.Funcs {
		if m.Funcs[i].Name == name {
			return &m.Funcs[i]
		}
	}
	return nil
}

// Func is one host function. Exactly one of Pure and Effect is set: Pure
// computes from its arguments alone and is handed nothing else; Effect touches
// the world, and the engine calls it only through the Door.
type Func struct {
	Name   string
	Hidden bool // for the module's own prelude: not listed in help

	Pure   func(args Args) ([]Value, error)
	Effect func(ctx context.Context, services *Services, args Args) ([]Value, error)

	// Kind is what sort of effect it is; Classify, when set, decides per call.
	Kind     Kind
	Classify func(services *Services, args Args) Kind

	// Path is which argument is the path of the file it changes; 0 for an effect
	// that is not on World.Files alone. A rehearsal does those aside.
	Path int

	// Overlay tells that it changes only World.Contents, which a rehearsal does aside
	// as well.
	Overlay bool

	// Waits tells that an effect may take long because somebody else must answer.
	// A script that does several things at once goes on with the others meanwhile.
	Waits bool
}

// Kind sorts effects by what may be done with them in a rehearsal and after a
// crash.
type Kind uint8

// The kinds.
const (
	Observe          Kind = iota // tells somebody something (log, span, progress): always done, never recorded
	Read                         // looks at the world and changes nothing
	Idempotent                   // changes the world, but twice is the same as once
	Write                        // changes the world
	Nondeterministic             // time, randomness: recorded, never rehearsed away
	Nested                       // runs another script, whose own effects pass the same door
)

// String is the kind's name in journals and plans.
func (k Kind) String() string {
	return [...]string{"observe", "read", "repeat", "write", "moment", "within"}[k]
}

// Table makes a table value of anything that encodes as JSON.
func Table(v any) (Value, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(raw), nil
}
