// Package host is the boundary between scripts and the server. It defines what a script
// can call, once in Go for all engines, and how each call takes effect.
//
// A Module is a global of scripts: a named set of functions with its documentation. A
// Func is either pure, computing from its arguments alone, or an effect, which reads or
// changes something outside the script. An Env holds the modules of one run. An engine
// binds them and calls every function through Env.Call; effects reach the Services of
// the run only through the Env's Handler. Nothing that a script can call bypasses it.
//
// The Handler decides how effects are carried out, which gives a run its mode:
//
//   - live (Live, Journal): carry out the effect; a Journal also records the outcome
//   - rehearse (Rehearsal): carry out reads, record everything else in a plan and answer
//     it with a mock
//   - replay (Replay): answer from a journal; past its end refuse the effect, or pass it
//     to another Handler, which resumes the run after a crash
//
// Other Handlers wrap one of these: LimitEffects and ToolCounter enforce a budget,
// TrackFlow follows labelled data, and Approval pauses the run at an effect that a
// person must approve.
package host

import (
	"context"
	"embed"
	"encoding/json"
	"math"
	"path"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Value is passed between a script and the host, always as a copy: nil, bool, int64,
// float64, string (any bytes), json.RawMessage for a table, or *Lazy for a table of a
// rehearsal.
type Value = any

// Lazy is a table that was made up in a rehearsal. The engine calls Look when the script
// first uses anything in it.
type Lazy struct {
	JSON json.RawMessage
	Look func()
}

// Module is a global of scripts. Functions that change the script's own tables in place,
// or take functions, are written in its preludes; the Go functions provide only what
// scripts cannot do.
type Module struct {
	Name string // the global; "" makes the functions globals themselves
	Text
	Funcs []Func

	LuaOnly bool // JavaScript has its own equivalent
}

func (l *Lazy) String() string { return string(l.JSON) }

// Text is what a module has besides Go.
type Text struct {
	Page string // Markdown: what help shows, one "## name" section per function
	Lua  string // run in the script's Lua state; globals "__…" are for preludes only
	JS   string // an expression: a function called with the module's object and an object with all its functions
}

// ReadText reads the page of a module and its preludes, prelude.lua and prelude.js, from
// the files that it embeds.
func ReadText(files embed.FS) Text {
	entries, _ := files.ReadDir(".") // the root always exists
	var t Text
	for _, entry := range entries {
		content, _ := files.ReadFile(entry.Name())
		switch path.Ext(entry.Name()) {
		case ".md":
			t.Page = string(content)
		case ".lua":
			t.Lua = string(content)
		case ".js":
			t.JS = string(content)
		}
	}
	return t
}

// HasFunc reports whether modules have a function that a script calls by that name.
func HasFunc(modules []Module, path string) bool {
	for i := range modules {
		for j := range modules[i].Funcs {
			effect := strings.TrimPrefix(modules[i].Name+"."+modules[i].Funcs[j].Name, ".")
			if effect == path || ShownName(effect) == path {
				return true
			}
		}
	}
	return false
}

// Func returns the module's function of that name, or nil.
func (m *Module) Func(name string) *Func {
	for i := range m.Funcs {
		if m.Funcs[i].Name == name {
			return &m.Funcs[i]
		}
	}
	return nil
}

// Func is one host function. Exactly one of Pure and Effect is set: Pure computes from
// its arguments alone; Effect uses Services, and is called only through the Handler.
type Func struct {
	Name   string
	Hidden bool // for the module's own prelude; not listed in help

	Pure   func(args Args) ([]Value, error)
	Effect func(ctx context.Context, services *Services, args Args) ([]Value, error)

	// Kind is the kind of the effect; Classify, when set, decides per call.
	Kind     Kind
	Classify func(ctx context.Context, services *Services, args Args) Kind

	// Check returns why the effect would be refused, without carrying it out. A rehearsal
	// calls it for effects that it mocks; nil means that nothing is known beforehand.
	Check func(ctx context.Context, services *Services, args Args) error

	// Path is the index of the argument with the path of the file that the effect
	// changes; 0 if the effect is not on Services.Files alone. A rehearsal carries these
	// effects out in an overlay.
	Path int

	// Overlay is set if the effect changes only Services.Contents or Services.KV. A
	// rehearsal carries these out in an overlay too.
	Overlay bool

	// Starts is set if the effect only starts a job. It needs no approval, because each
	// effect of the job asks for its own.
	Starts bool

	// Action says in plans what the effect would do, such as "write notes.txt"; nil gives its
	// name and its first argument. The size of the file that Path names is added.
	Action func(args Args) string

	// Mock is the answer of a rehearsal in place of the effect, as JSON; "" is none. Mocked
	// makes the results from a mock, also from one that the caller gave; nil makes it the
	// result.
	Mock   string
	Mocked func(args Args, mock json.RawMessage) ([]Value, error)

	// Inspected is the answer while a script is only inspected, as when its describe() is
	// called: names of tools, the time, variables, temp paths and spans are what scripts ask
	// for at their top level. Inspectable effects are carried out then, and so are those that
	// Vary, whose answer may be another the next time. All others are refused.
	Inspected   func(args Args) []Value
	Inspectable bool
	Varies      bool

	// Waits is set if the effect may block for long. A script that runs several effects
	// in parallel continues with the others meanwhile.
	Waits bool
}

// Does returns an Action: a verb and argument i.
func Does(verb string, i int) func(Args) string {
	return func(args Args) string { return verb + " " + Shown(args.At(i)) }
}

// inOverlay reports whether a rehearsal carries the effect out, in an overlay.
func (f *Func) inOverlay() bool { return f.Path > 0 || f.Overlay }

// Answers returns fixed results for Func.Inspected.
func Answers(values ...Value) func(Args) []Value {
	return func(Args) []Value { return values }
}

// Kind says how an effect is handled in a rehearsal and after a crash.
type Kind uint8

// The kinds.
const (
	Observe          Kind = iota // reports something (log, span, progress): always carried out, never recorded
	Read                         // changes nothing
	Idempotent                   // changes something, but repeating it has no further effect
	Write                        // changes something
	Nondeterministic             // time, randomness: recorded, also carried out in a rehearsal
	Nested                       // runs another script, whose effects pass the same Handler
)

// String returns the kind's name in journals and plans.
func (k Kind) String() string {
	return [...]string{"observe", "read", "repeat", "write", "moment", "within"}[k]
}

// Table encodes v as a table value.
func Table(v any) (Value, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(raw), nil
}

// Args are the arguments of one call. Its methods count from 1, as scripts and
// their error messages do.
type Args struct {
	Func   string // "midi.write", for messages
	Values []Value
}

// Len returns the number of arguments.
func (a Args) Len() int { return len(a.Values) }

// At returns argument i, or nil if it is missing.
func (a Args) At(i int) Value {
	if i < 1 || i > len(a.Values) {
		return nil
	}
	return a.Values[i-1]
}

// String returns argument i, which must be a string or a number.
func (a Args) String(i int) (string, error) {
	switch v := a.At(i).(type) {
	case string:
		return v, nil
	case int64, float64:
		raw, err := json.Marshal(v)
		return string(raw), err
	default:
		return "", a.wrong(i, "string")
	}
}

// OptString returns argument i, or otherwise if it is missing.
func (a Args) OptString(i int, otherwise string) (string, error) {
	if a.At(i) == nil {
		return otherwise, nil
	}
	return a.String(i)
}

// Float returns argument i as a number.
func (a Args) Float(i int) (float64, error) {
	switch v := a.At(i).(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	default:
		return 0, a.wrong(i, "number")
	}
}

// Int returns argument i as an integer.
func (a Args) Int(i int) (int64, error) {
	switch v := a.At(i).(type) {
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
		return 0, a.wrong(i, "whole number")
	default:
		return 0, a.wrong(i, "number")
	}
}

// OptInt returns argument i, or otherwise if it is missing.
func (a Args) OptInt(i int, otherwise int64) (int64, error) {
	if a.At(i) == nil {
		return otherwise, nil
	}
	return a.Int(i)
}

// Table returns argument i as the JSON of a table; nil if it is missing.
func (a Args) Table(i int) (json.RawMessage, error) {
	switch v := a.At(i).(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return v, nil
	default:
		return nil, a.wrong(i, "table")
	}
}

// Decode decodes the table in argument i into v; a missing one leaves v unchanged.
func (a Args) Decode(i int, v any) error {
	raw, err := a.Table(i)
	if err != nil || raw == nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fault.New(fault.InvalidParams, "bad argument #%d to '%s' (%v)", i, a.Func, err)
	}
	return nil
}

// wrong words a type error as Lua does, so that errors of host functions and of Lua's
// own functions read the same.
func (a Args) wrong(i int, expected string) error {
	return fault.New(fault.InvalidParams, "bad argument #%d to '%s' (%s expected, got %s)", i, a.Func, expected, a.typeName(i))
}

func (a Args) typeName(i int) string {
	if i > len(a.Values) {
		return "no value"
	}
	switch a.At(i).(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		return "string"
	default:
		return "table"
	}
}
