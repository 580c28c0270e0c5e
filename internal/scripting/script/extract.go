package script

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

//go:embed extract.lua
var saveSource string

// ExtractedScript is a function of a session as a standalone script.
type ExtractedScript struct {
	Source   string
	Warnings []string // values that could not be extracted
}

// ValidName reports whether a script can have that name, also as a tool: every client
// accepts it, and our prefixes fit before it.
func ValidName(name string) bool { return scriptName().MatchString(name) }

var scriptName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,47}$`)

// Extract writes a function of a session down as a script, with everything it uses: the
// function of that name, which the script's main(params) calls, or the session's own main.
// q has a copy of the session's state, which it uses up.
func (r *Runner) Extract(ctx context.Context, q Request, name string) (w ExtractedScript, err error) {
	if !ValidName(name) {
		return w, fault.New(fault.InvalidParams, "%q cannot be a script's name", name).WithHint("use a letter, then letters, digits and _")
	}
	if q.language() == JavaScript {
		w, err = r.extractJavaScript(ctx, q, name)
	} else {
		w, err = r.lua.extract(ctx, q, name)
	}
	if err == nil { // it must at least load and describe itself
		_, err = r.Describe(ctx, Request{Source: w.Source, Name: name, Language: q.language()})
	}
	return w, err
}

// extract runs the extraction in a session's state, with access that scripts do not have.
func (e *luaEngine) extract(ctx context.Context, q Request, name string) (w ExtractedScript, err error) {
	env := host.NewEnv(e.modules, host.DenyEffects("a function is being extracted"), &host.Services{})
	state, err := e.stateFor(ctx, q, runLimits{Limits: q.Limits}, env, 1)
	if lost := (*restoreError)(nil); errors.As(err, &lost) {
		return w, lost.reason
	}
	if err != nil {
		return w, err
	}
	call := func(writer lua.Value, args ...lua.Value) ([]lua.Value, error) {
		return state.Call(ctx, writer, args...)
	}
	preludes, err := ourPreludes()
	if err != nil {
		return w, err
	}
	return extraction{state, call, preludes, turnSources(state)}.write(name, lua.Nil)
}

// extraction writes functions of a state down.
type extraction struct {
	state    *lua.State
	call     func(fn lua.Value, args ...lua.Value) ([]lua.Value, error) // calls a function in the state
	preludes *preludes
	sources  *lua.Table // of the chunks that defined functions, by their names
}

// write writes down the function fn, or without one the global of that name.
func (e extraction) write(name string, fn lua.Value) (w ExtractedScript, err error) {
	standard := lua.NewTable(0, 64)
	for _, name := range e.preludes.globals {
		standard.SetString(name, lua.Bool(true))
	}
	writer, err := e.state.Load(saveSource, "=[luanette:save]")
	if err != nil {
		return w, err
	}
	results, err := e.call(writer.Value(), e.sources.Value(), standard.Value(), lua.String(name), sameCode.Value(), debugFuncs().Value(), fn)
	if err != nil {
		return w, fault.Wrap(fault.Script, err, "extract %s", name)
	}
	raw, err := resultOf(e.state, results)
	if err != nil {
		return w, err
	}
	return readExtracted(raw, name)
}

// debugFuncs are the functions that look into functions; scripts do not have them.
func debugFuncs() *lua.Table {
	t := lua.NewTable(0, 4)
	for _, c := range borrowed(lua.DebugLib, []string{"getinfo", "getupvalue", "upvalueid", "getmetatable"}) {
		t.SetString(c.Name, c.Value)
	}
	return t
}

// sourceKey is the key of the running source of a state.
type sourceKey struct{}

// runningSource is the source that a state runs.
type runningSource struct {
	name, text string
	preludes   *preludes
}

// functionSource(fn) returns fn as a script of its own, with everything it uses.
func functionSource(c *lua.Call) error {
	fn, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	sources := lua.NewTable(0, 0)
	for key, value := range turnSources(c.State()).All() {
		if err := c.SetRaw(sources, key, value); err != nil {
			return err
		}
	}
	running, ok := c.State().Stored(sourceKey{}).(runningSource)
	if !ok {
		return c.Errorf("background: the state runs no script")
	}
	sources.SetString(running.name, lua.String(running.text))
	w, err := extraction{c.State(), c.Call, running.preludes, sources}.write("background", fn.Value())
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.InvalidParams, "background: %v", err).WithHint("give a function that is written in the script")
	}
	if err != nil {
		return raise(c, err)
	}
	if len(w.Warnings) > 0 {
		return raise(c, fault.New(fault.InvalidParams, "background: %s", strings.Join(w.Warnings, "; ")).
			WithHint("pass what the function needs as params"))
	}
	return c.Return(lua.String(w.Source))
}

// sameCode(f, g) reports whether two functions have the same source.
var sameCode = lua.NewFunc("same_code", func(c *lua.Call) error {
	f, isFunction := c.Arg(1).AsFunction()
	g, areFunctions := c.Arg(2).AsFunction()
	return c.Return(lua.Bool(isFunction && areFunctions && f.SameCode(g)))
})

// sourcesName is the registry key of the sources of turns that defined functions, by the
// turn's name.
const sourcesName = "luanette.turns"

// definesFunction matches sources that define global functions.
var definesFunction = lazyregexp.New(`\bfunction\s+[A-Za-z_]|=\s*function\b`)

// longestSource is the size up to which the source of a turn is stored.
const longestSource = 64 << 10

func turnSources(state *lua.State) *lua.Table {
	if t, ok := state.Registry().GetString(sourcesName).AsTable(); ok {
		return t
	}
	t := lua.NewTable(0, 0)
	state.Registry().SetString(sourcesName, t.Value())
	return t
}

// storeSource stores the source of a turn that defines functions.
func storeSource(state *lua.State, q Request) {
	if len(q.Source) <= longestSource && definesFunction().MatchString(q.Source) {
		turnSources(state).SetString(q.name(), lua.String(q.Source))
	}
}

//go:embed extract.js
var extractJavaScript string

// extractJavaScript runs the extraction in a session's state, without effects.
func (r *Runner) extractJavaScript(ctx context.Context, q Request, name string) (w ExtractedScript, err error) {
	q.Handler = host.DenyEffects("a function is being extracted")
	standard, err := r.run(ctx, Request{Source: "Object.getOwnPropertyNames(globalThis)", Language: JavaScript, Handler: q.Handler})
	if err != nil {
		return w, err
	}
	q.Source, q.FlowName = fmt.Sprintf("%s(%s, %s)", extractJavaScript, standard.Result, encode(name)), ""
	outcome, err := r.run(ctx, q)
	if err != nil {
		return w, err
	}
	return readExtracted(outcome.Result, name)
}

// readExtracted reads what the extraction returned, in either language.
func readExtracted(raw json.RawMessage, name string) (ExtractedScript, error) {
	var written struct {
		Source, Problem string
		Warnings        []string
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		return ExtractedScript{}, fault.Wrap(fault.Internal, err, "extract %s", name)
	}
	if written.Problem != "" {
		return ExtractedScript{}, fault.New(fault.NotFound, "%s", written.Problem).WithHint("define a function of that name, or main(params), and save again")
	}
	return ExtractedScript{written.Source, written.Warnings}, nil
}
