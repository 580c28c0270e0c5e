package js

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

const defaultName = "script.js"

func (p *Program) name() string {
	if p.Name == "" {
		return defaultName
	}
	return p.Name
}

// funcSettings describes a Func to the prelude.
type funcSettings struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	Sync   bool   `json:"sync,omitempty"`
	Hidden bool   `json:"hidden,omitempty"`
}

func functions(funcs []Func) []funcSettings {
	settings := make([]funcSettings, len(funcs))
	for i, f := range funcs {
		if f.Target == "" {
			f.Target = f.Name
		}
		settings[i] = funcSettings(f)
	}
	return settings
}

// settings returns the description of a module for the prelude, as JSON.
func (m *Module) settings() (string, error) {
	b, err := json.Marshal(struct {
		Name  string         `json:"name"`
		Space bool           `json:"space"`
		Funcs []funcSettings `json:"funcs"`
	}{m.Name, m.Space, functions(m.Funcs)})
	return string(b), err
}

// settings returns the script's environment for the prelude, encoded as an answer, or "" if
// there is none.
func (p *Program) settings() (string, error) {
	resolved := p.resolved()
	if len(resolved)+len(p.Funcs)+len(p.Namespaces)+len(p.Globals) == 0 {
		return "", nil
	}
	b, err := json.Marshal(struct {
		Namespaces []string                   `json:"namespaces"`
		Funcs      []funcSettings             `json:"funcs"`
		Resolved   []funcSettings             `json:"resolved"` // defined only if the name is free
		Globals    map[string]json.RawMessage `json:"globals"`
	}{append([]string{}, p.Namespaces...), functions(p.Funcs), functions(resolved), mapOrEmpty(p.Globals)})
	if err != nil {
		return "", fault.Wrap(fault.InvalidParams, err, "encode the globals of %s", p.name())
	}
	return encodeJSON(b), nil
}

func mapOrEmpty(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}

// resolved calls Resolve for every identifier in the source.
func (p *Program) resolved() []Func {
	if p.Resolve == nil {
		return nil
	}
	var found []Func
	seen := map[string]bool{}
	for i := 0; i < len(p.Source); i++ {
		if !isWord(p.Source[i]) {
			continue
		}
		word := wordAt(p.Source, i)
		i += len(word)
		if seen[word] {
			continue
		}
		seen[word] = true
		if f, ok := p.Resolve(word); ok {
			found = append(found, f)
		}
	}
	return found
}

// The text that wraps a script that returns at the top level in a function.
const (
	wrapBefore = "(async () => {"
	wrapAfter  = "\n})()"
)

// start compiles the program and starts it. The result is the script's promise.
func (r *run) start(ctx context.Context) (value, error) {
	for forgotten := ""; ; {
		code, err := r.compile(ctx)
		if err != nil {
			return 0, err
		}
		main, err := r.in.evaluate(ctx, code)
		if err != nil {
			return 0, err
		}
		if main.isException() {
			return 0, r.thrown(ctx)
		}
		name, err := r.redeclared(ctx, main)
		if err != nil || name == "" {
			return main, err
		}
		if name == forgotten {
			return 0, r.cannotRedeclare(name)
		}
		if err := r.forget(ctx, name); err != nil {
			return 0, err
		}
		forgotten = name
	}
}

// redeclaration matches the engine's error for a second let, const or class.
var redeclaration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^redeclaration of '(.*)'$`) })

// redeclared returns the variable whose second declaration made the engine refuse a
// session's script before any of it ran.
func (r *run) redeclared(ctx context.Context, main value) (string, error) {
	if !r.redeclare || r.calls.made+len(r.console.lines) > 0 || r.watch.stop(ctx, false) {
		return "", nil // the last case only if a script forges such errors
	}
	state, err := r.in.call(ctx, fnPromiseState, r.in.context, uint64(main))
	if err != nil || state != promiseRejected {
		return "", err
	}
	reason, err := r.in.call(ctx, fnPromiseResult, r.in.context, uint64(main))
	if err != nil {
		return "", err
	}
	e, err := r.describe(ctx, value(reason))
	if err != nil {
		return "", err
	}
	m := redeclaration().FindStringSubmatch(e.Message)
	if m == nil || e.Name != "SyntaxError" || len(e.Stack) > 1 { // deeper: thrown by an eval inside
		return "", r.in.freeValue(ctx, value(reason))
	}
	r.releaseRejections(ctx)
	return m[1], r.in.freeValue(ctx, value(reason), main)
}

// cannotRedeclare is the error for a variable that is permanently bound to the global object.
func (r *run) cannotRedeclare(name string) error {
	e := &Error{Name: "SyntaxError", Message: "redeclaration of '" + name + "'"}
	return (&fault.Error{Code: fault.Script, Err: e}).
		WithHint("%s was declared by var or function before: declare it the same way, or assign to it", name)
}

// forget removes a top-level variable of an earlier evaluation. Functions that use it keep
// working and find the new one.
func (r *run) forget(ctx context.Context, name string) error {
	at, err := r.in.place(ctx, name)
	if err != nil {
		return err
	}
	atom, err := r.in.call(ctx, fnNewAtomLen, r.in.context, at, uint64(len(name)))
	if err != nil {
		return err
	}
	if _, err := r.in.call(ctx, fnDeleteProperty, r.in.context, uint64(r.in.lexicals), atom, 0); err != nil {
		return err
	}
	if _, err := r.in.call(ctx, fnFreeAtom, r.in.context, atom); err != nil {
		return err
	}
	_, err = r.in.call(ctx, fnFree, at)
	return err
}

// compile compiles the source unchanged, or else with its types stripped.
func (r *run) compile(ctx context.Context) (value, error) {
	code, plain := r.compileText(ctx, r.program.Source, sourceMap{})
	var e *Error
	if !errors.As(plain, &e) || e.Name != "SyntaxError" {
		return code, plain
	}
	text, mapping, err := r.strip(r.program.Source)
	if err == nil {
		code, err = r.compileText(ctx, text, mapping)
	}
	if errors.As(err, &e) {
		e.Static = true
		return 0, r.refuse(e)
	}
	return code, err
}

// strip removes types. The stripper does not accept top-level await together with a
// top-level return, so a source that returns is wrapped in a function first.
func (r *run) strip(source string) (string, sourceMap, error) {
	text, mapping, err := stripTypes(source, r.program.name())
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "Top-level return") {
		return text, mapping, err
	}
	text, mapping, err = stripTypes(wrapBefore+source+wrapAfter, r.program.name())
	mapping.Shifted = len(wrapBefore)
	if errors.As(err, &e) && len(e.Stack) > 0 && e.Stack[0].Line == 1 {
		e.Stack[0].Column = max(1, e.Stack[0].Column-len(wrapBefore))
	}
	return text, mapping, err
}

// compileText compiles a text as a script, or as a function if it returns.
func (r *run) compileText(ctx context.Context, text string, mapping sourceMap) (value, error) {
	code, err := r.compileAs(ctx, text, mapping)
	var e *Error
	if errors.As(err, &e) && strings.Contains(e.Message, "return not in a function") {
		mapping.Wrapped = len(wrapBefore)
		return r.compileAs(ctx, wrapBefore+text+wrapAfter, mapping)
	}
	return code, err
}

func (r *run) compileAs(ctx context.Context, text string, mapping sourceMap) (value, error) {
	r.maps.set(r.program.name(), mapping)
	code, err := r.in.compile(ctx, lead+text, r.program.name(), evalAsync)
	if err != nil {
		return 0, err
	}
	if code.isException() {
		return 0, r.thrown(ctx)
	}
	return code, nil
}

var moduleSyntax = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*(import\s*[\w{*"']|export\s+[\w{*])`) })

// refuse makes a syntax error readable.
func (r *run) refuse(e *Error) error {
	if at := moduleSyntax().FindStringIndex(r.program.Source); at != nil {
		before := r.program.Source[:at[0]]
		line := 1 + strings.Count(before, "\n")
		line += strings.Count(r.program.Source[at[0]:at[1]], "\n")
		e = &Error{
			Name:    "SyntaxError",
			Static:  true,
			Message: "modules are not available: no import, no export",
			Stack:   []Frame{{File: r.program.name(), Line: line, Column: 1}},
			Hint:    "everything a script may use is global; leave out import and export",
		}
	}
	return (&fault.Error{Code: fault.Script, Err: e}).WithHint("%s", e.Hint)
}
