package script

import (
	"context"
	_ "embed"
	"encoding/json"
	"regexp"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

//go:embed session_extract.lua
var saveSource string

// ExtractedScript is a function of a session as a standalone script.
type ExtractedScript struct {
	Source   string
	Warnings []string // values that could not be extracted
}

// Script extracts a function of a session as a script, with everything it uses: the
// function of that name, which the script's main(params) calls, or the session's own
// main. The session does not change.
func (s *Sessions) Script(ctx context.Context, owner, id, name string) (w ExtractedScript, err error) {
	if !toolName().MatchString(name) {
		return w, fault.New(fault.InvalidParams, "%q cannot be a script's name", name).WithHint("use a letter, then letters, digits and _")
	}
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, live, err := s.fetchCopy(ctx, owner, id)
		if err != nil {
			return err
		}
		if row.Language != Lua {
			return fault.New(fault.InvalidParams, "only functions of sessions in Lua can be extracted as a script; this session uses %s", row.Language)
		}
		q, err := s.inSession(Request{}, row, live)
		if err != nil {
			return err
		}
		w, err = s.runner.lua.write(ctx, q.turn.(*luaTurn), q.Limits, name)
		return err
	})
	if err == nil { // it must at least load and describe itself
		_, err = s.runner.Describe(ctx, Request{Source: w.Source, Name: name, Language: Lua})
	}
	return w, err
}

// write runs the extraction in a copy of the session's state, with access that scripts
// do not have.
func (e *luaEngine) write(ctx context.Context, t *luaTurn, limits Limits, name string) (w ExtractedScript, err error) {
	env := host.NewEnv(e.modules, host.DenyEffects("a function is being extracted"), &host.Services{})
	state, err := t.open(ctx, limits, env, 1)
	if err != nil {
		return w, err
	}
	fresh, err := e.open(ctx, limits, env, 1)
	if err != nil {
		return w, err
	}
	standard := lua.NewTable(0, 64)
	for key := range fresh.Globals().All() {
		if text, ok := key.AsString(); ok {
			standard.SetString(text, lua.Bool(true))
		}
	}
	if err := state.Open(lua.DebugLib); err != nil {
		return w, err
	}
	writer, err := state.Load(saveSource, "=[luanette:save]")
	if err != nil {
		return w, err
	}
	results, err := state.Call(ctx, writer.Value(), turnSources(state).Value(), standard.Value(), lua.String(name), sameCode.Value())
	if err != nil {
		return w, fault.Wrap(fault.Script, err, "extract %s", name)
	}
	raw, err := resultOf(state, results)
	if err != nil {
		return w, err
	}
	var written struct {
		Source, Problem string
		Warnings        []string
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		return w, fault.Wrap(fault.Internal, err, "extract %s", name)
	}
	if written.Problem != "" {
		return w, fault.New(fault.NotFound, "%s", written.Problem).WithHint("define a function of that name, or main(params), and save again")
	}
	return ExtractedScript{written.Source, written.Warnings}, nil
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
var definesFunction = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bfunction\s+[A-Za-z_]|=\s*function\b`) })

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
