package js

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
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

// settings returns the functions of the program for the prelude, as JSON, or "" if there are
// none.
func (p *Program) settings() (string, error) {
	if len(p.Funcs) == 0 {
		return "", nil
	}
	b, err := json.Marshal(functions(p.Funcs))
	return string(b), err
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
var redeclaration = lazyregexp.New(`^redeclaration of '(.*)'$`)

// redeclared returns the variable whose second declaration made the engine refuse a
// session's script before any of it ran.
func (r *run) redeclared(ctx context.Context, main value) (string, error) {
	if !r.redeclare || r.wrote || r.calls.made > 0 || r.watch.stop(ctx, false) {
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

var moduleSyntax = lazyregexp.New(`(?m)^\s*(import\s*[\w{*"']|export\s+[\w{*])`)

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

// maxTypeScript is the largest source whose types are stripped, in bytes.
const maxTypeScript = 128 << 10

// stripTypes converts TypeScript to JavaScript. A syntax error is an *Error with the
// position in source.
func stripTypes(source, name string) (string, sourceMap, error) {
	refuse := func(why string) error {
		return &Error{Name: "SyntaxError", Message: "TypeScript source " + why, Stack: []Frame{{File: name, Line: 1, Column: 1}}}
	}
	switch {
	case len(source) > maxTypeScript:
		return "", sourceMap{}, refuse(fmt.Sprintf("is larger than %d KiB", maxTypeScript>>10))
	case nesting(source) > maxNesting:
		return "", sourceMap{}, refuse("nests too deeply")
	}
	result := api.Transform(source, api.TransformOptions{
		Loader:      api.LoaderTS,
		Target:      api.ESNext,
		Sourcefile:  name,
		Sourcemap:   api.SourceMapExternal,
		LogLevel:    api.LogLevelSilent,
		TsconfigRaw: `{"compilerOptions":{"verbatimModuleSyntax":true}}`, // keep imports: they are refused, not lost
	})
	if len(result.Errors) > 0 {
		return "", sourceMap{}, typeScriptError(result.Errors[0])
	}
	var m sourceMap
	if err := json.Unmarshal(result.Map, &m); err != nil {
		return "", sourceMap{}, fmt.Errorf("read the source map: %w", err)
	}
	return string(result.Code), m, nil
}

func typeScriptError(m api.Message) *Error {
	e := &Error{Name: "SyntaxError", Message: m.Text}
	if at := m.Location; at != nil {
		e.Stack = []Frame{{File: at.File, Line: at.Line, Column: at.Column + 1}}
	}
	return e
}

// maxNesting is the deepest nesting of TypeScript source, as estimated by nesting. The
// type stripper recurses on the Go stack, whose overflow ends the process, and takes more
// than quadratic time for nested arrow functions.
const maxNesting = 1000

// nesting estimates how deep a parser recurses for source. It does not distinguish strings
// and comments from code, so it may count too much. It counts what makes parsers recurse:
// open brackets, and operators and keywords since the last end of an expression.
func nesting(source string) int {
	n := nestingCounter{frames: []int{0}}
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case strings.IndexByte("([{`", c) >= 0:
			n.push()
		case strings.IndexByte(")]", c) >= 0:
			n.pop()
		case c == '}':
			n.pop()
			n.reset()
		case c == ';' || c == ',' || c == '\n' && endsExpression(source, i):
			n.reset()
		case c == '=' && strings.HasPrefix(source[i:], "=>"):
			n.add(4)
			i++
		case strings.IndexByte("!~+-=.?:&|*<@", c) >= 0:
			n.add(1)
		case isWord(c):
			word := wordAt(source, i)
			if recursive[word] {
				n.add(2)
			}
			i += len(word) - 1
		}
	}
	return n.deepest
}

// nestingCounter counts per open bracket, so that a closing bracket discards its contents.
type nestingCounter struct {
	frames         []int
	total, deepest int
}

func (n *nestingCounter) push() {
	n.frames = append(n.frames, 0)
	n.add(4)
}

func (n *nestingCounter) pop() {
	n.reset()
	if len(n.frames) > 1 {
		n.frames = n.frames[:len(n.frames)-1]
	}
}

func (n *nestingCounter) add(weight int) {
	n.frames[len(n.frames)-1] += weight
	n.total += weight
	n.deepest = max(n.deepest, n.total)
}

func (n *nestingCounter) reset() {
	n.total -= n.frames[len(n.frames)-1]
	n.frames[len(n.frames)-1] = 0
}

// recursive lists the keywords after which a parser recurses.
var recursive = map[string]bool{
	"if": true, "else": true, "for": true, "while": true, "do": true, "with": true,
	"new": true, "typeof": true, "void": true, "delete": true, "await": true, "yield": true,
	"keyof": true, "async": true, "infer": true, "extends": true, "as": true, "in": true, "of": true, "instanceof": true,
}

// endsExpression reports whether the line break at i separates two operands: then the word
// after it begins a new statement.
func endsExpression(source string, i int) bool {
	before := strings.TrimRight(source[max(0, i-64):i], " \t\r")
	after := strings.TrimLeft(source[i:min(len(source), i+64)], " \t\r\n")
	if before == "" || after == "" || !isWord(after[0]) {
		return false
	}
	last := before[len(before)-1]
	return (isWord(last) || strings.IndexByte(")]\"'`", last) >= 0) && !recursive[wordAt(after, 0)] && !recursive[lastWord(before)]
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

func wordAt(s string, i int) string {
	end := i
	for end < len(s) && isWord(s[end]) {
		end++
	}
	return s[i:end]
}

func lastWord(s string) string {
	start := len(s)
	for start > 0 && isWord(s[start-1]) {
		start--
	}
	return s[start:]
}
