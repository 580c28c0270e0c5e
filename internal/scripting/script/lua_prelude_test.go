package script

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// describing lists the type and the fields of a global.
const describing = `
	local seen = NAME
	local lines = {type(seen)}
	if type(seen) == "table" then
		for k, v in pairs(seen) do lines[#lines + 1] = tostring(k) .. " " .. type(v) end
		lines[#lines + 1] = "meta " .. type(getmetatable(seen))
	end
	table.sort(lines)
	return table.concat(lines, "\n")`

// TestPreludeOfANamedGlobal checks that a script that names a global finds the same
// value as a script that loads all preludes.
func TestPreludeOfANamedGlobal(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	var names []string
	evaluate(t, r, `local names = {} for name in pairs(_G) do names[#names + 1] = name end return names`, &names)
	for _, expected := range []string{"print", "io", "mcp", "parallel", "midi", "on", "emit", "http_request", "run_command", "table"} {
		if !slices.Contains(names, expected) {
			t.Errorf("there is no global %s", expected)
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, private) {
			t.Errorf("scripts see %s", name)
		}
		if name == "_G" {
			continue
		}
		source := strings.ReplaceAll(describing, "NAME", name)
		var alone, among string
		evaluate(t, r, source, &alone)
		evaluate(t, r, "local everything = _G "+source, &among)
		if alone != among {
			t.Errorf("%s by itself is\n%s\nand with everything\n%s", name, alone, among)
		}
	}
}

func preludesOf(t *testing.T, r *Runner) *preludes {
	t.Helper()
	p, err := ourPreludes()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPrivateGlobalsAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	preludes := preludesOf(t, r)
	for _, name := range preludes.hidden {
		for _, source := range []string{
			"return " + name + " == nil",
			"print() return " + name + " == nil",
			"return load('return " + name + " == nil')()",
		} {
			var removed bool
			if evaluate(t, r, source, &removed); !removed {
				t.Errorf("%s: a script can read the global", source)
			}
		}
	}
	if len(preludes.hidden) == 0 {
		t.Error("no prelude has private globals, so the test checks nothing")
	}
}

func TestAScriptRunsOnlyThePreludesItNeeds(t *testing.T) {
	t.Parallel()
	p := preludesOf(t, newRunner(t, nil))
	count := func(source string) (n int) {
		proto, err := lua.New(lua.Options{}).Compile(source, "=test")
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.protos {
			if p.neededBy(proto)&(1<<i) != 0 {
				n++
			}
		}
		return n
	}
	for source, want := range map[string]int{
		"return 1":                    0,
		"table.sort({})":              0,
		"print(1)":                    1,
		"log.info(1)":                 2, // and the formatting of values
		"return mcp.calc.double{}":    1,
		"return load('x')":            len(p.protos),
		"for k in pairs(_G) do end":   len(p.protos),
		"local e = _ENV return e.x":   len(p.protos),
		"return function() map() end": 1,
	} {
		if got := count(source); got != want {
			t.Errorf("%s: %d preludes, want %d", source, got, want)
		}
	}
}

// TestPreludeDependencies checks that a prelude may use the globals of another, in any
// order. A prelude that changes the metatable of strings always runs.
func TestPreludeDependencies(t *testing.T) {
	t.Parallel()
	modules := []host.Module{
		{Name: "early", Text: host.Text{Lua: "early = {ask = function() return late.answer() end}"}},
		{Name: "late", Text: host.Text{Lua: "late = {answer = function() return shared end}"}},
		{Name: "shared", Text: host.Text{Lua: "shared = 42"}},
		{Name: "loudness", Text: host.Text{Lua: "loud = string.upper"}},
		{Name: "words", Text: host.Text{Lua: "string.shout = loud"}},
	}
	p, err := newPreludes(modules, sandbox())
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]preludeSet{
		"return 1":           0b11000,
		"return early.ask()": 0b11111,
		"return late":        0b11110,
		"return shared":      0b11100,
	} {
		code, err := lua.New(lua.Options{}).Compile(source, "=test")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.neededBy(code); got != want {
			t.Errorf("%s needs %b, want %b", source, got, want)
		}
	}
}

func evaluate(t *testing.T, r *Runner, source string, into any) {
	t.Helper()
	outcome, err := r.Run(t.Context(), Request{Source: source})
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	if err := json.Unmarshal(outcome.Result, into); err != nil {
		t.Fatalf("%s: %v", source, err)
	}
}

// A value that cannot be saved is left out of a snapshot and listed.
func TestSnapshotListsWhatItOmits(t *testing.T) {
	t.Parallel()
	state := lua.New(lua.Options{})
	if err := state.Open(sandbox()...); err != nil {
		t.Fatal(err)
	}
	state.Globals().SetString("x", lua.Int(7))
	state.Globals().SetString("socket", lua.NewUserdata(new(int), nil).Value())
	saved, omitted, err := (&luaState{state: state}).Snapshot(t.Context())
	if err != nil || len(saved) == 0 || len(omitted) != 1 || !strings.Contains(omitted[0], "socket") {
		t.Errorf("omitted %q, %v", omitted, err)
	}
}
