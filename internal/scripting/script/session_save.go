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

//go:embed save.lua
var saving string

// ExtractedScript is a function of a session as a script that runs by itself.
type ExtractedScript struct {
	Source   string
	Warnings []string // what of it could not be written down
}

// Script writes a function of a session down, with everything it uses: the one of
// that name, which main(params) of the script calls, or the session's own main.
// The session stays as it is.
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
			return fault.New(fault.InvalidParams, "only functions of sessions in Lua can be kept as a script, this one speaks %s", row.Language)
		}
		q, err := s.inSession(Request{}, row, live)
		if err != nil {
			return err
		}
		w, err = s.runner.lua.write(ctx, q.turn.(*luaTurn), q.Limits, name)
		return err
	})
	if err == nil { // it must run by itself, at least so far as to say what it is
		_, err = s.runner.Describe(ctx, Request{Source: w.Source, Name: name, Language: Lua})
	}
	return w, err
}

// write runs the writer in a copy of the session's state, which it may look into
// as no script may.
func (e *luaEngine) write(ctx context.Context, t *luaTurn, limits Limits, name string) (w ExtractedScript, err error) {
	env := host.NewEnv(e.modules, host.DenyEffects("a function is being written down"), &host.Services{})
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
	writer, err := state.Load(saving, "=[luanette:save]")
	if err != nil {
		return w, err
	}
	results, err := state.Call(ctx, writer.Value(), turnSources(state).Value(), standard.Value(), lua.String(name), sameCode.Value())
	if err != nil {
		return w, fault.Wrap(fault.Script, err, "write %s down", name)
	}
	raw, err := resultOf(results)
	if err != nil {
		return w, err
	}
	var written struct {
		Source, Problem string
		Warnings        []string
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		return w, fault.Wrap(fault.Internal, err, "write %s down", name)
	}
	if written.Problem != "" {
		return w, fault.New(fault.NotFound, "%s", written.Problem).WithHint("define a function of that name, or main(params), and save again")
	}
	return ExtractedScript{written.Source, written.Warnings}, nil
}

// sameCode(f, g) tells whether two functions have the same text.
var sameCode = lua.NewFunc("same_code", func(c *lua.Call) error {
	f, isFunction := c.Arg(1).AsFunction()
	g, areFunctions := c.Arg(2).AsFunction()
	return c.Return(lua.Bool(isFunction && areFunctions && f.SameCode(g)))
})

// sourcesName is where a session's state has the sources of the turns that
// defined functions, by the turn's name.
const sourcesName = "luanette.turns"

// definesFunction finds sources that leave functions behind.
var definesFunction = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bfunction\s+[A-Za-z_]|=\s*function\b`) })

// longestSource bounds what is kept of a turn for the sake of saving it.
const longestSource = 64 << 10

func turnSources(state *lua.State) *lua.Table {
	if t, ok := state.Registry().GetString(sourcesName).AsTable(); ok {
		return t
	}
	t := lua.NewTable(0, 0)
	state.Registry().SetString(sourcesName, t.Value())
	return t
}

// noteSource keeps the source of a turn that defines functions.
func noteSource(state *lua.State, q Request) {
	if len(q.Source) <= longestSource && definesFunction().MatchString(q.Source) {
		turnSources(state).SetString(q.name(), lua.String(q.Source))
	}
}
