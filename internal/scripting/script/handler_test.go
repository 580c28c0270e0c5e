package script

import (
	"context"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// everythingReachable visits every value that a script can reach by any path: globals,
// fields, metatables, and the variables of functions, which debug shows.
const everythingReachable = `
local debug, note = debug, note
_G.debug, _G.note = nil, nil
local seen, todo = { [debug] = true, [note] = true }, { _G, string, "" }
for _, f in pairs(debug) do seen[f] = true end
while #todo > 0 do
  local v = table.remove(todo)
  local kind = type(v)
  if kind == "string" then todo[#todo + 1] = debug.getmetatable(v) end
  if (kind == "table" or kind == "function" or kind == "userdata" or kind == "thread") and not seen[v] then
    seen[v] = true
    todo[#todo + 1] = debug.getmetatable(v)
    if kind == "table" then
      for k, x in next, v do todo[#todo + 1] = k todo[#todo + 1] = x end
    elseif kind == "function" then
      note(v)
      for i = 1, 250 do
        local name, x = debug.getupvalue(v, i)
        if name == nil then break end
        todo[#todo + 1] = x
      end
    end
  end
end`

// bound are functions of the engine's binding: they compute on the script's own
// values, or start an effect through the Handler as any host function does.
var bound = []string{
	"json.array", "__function_source", "fs.__at_end", "mcp.__bind", "mcp.invoke", "table.is_array",
	"parallel.__adopt", "parallel.__flight", "parallel.__land", "parallel.__abort", "parallel.__raise",
}

// computing are the functions of Lua itself that scripts have. None of them
// reaches beyond the state.
var computing = strings.Fields(`
	assert collectgarbage error getmetatable ipairs load next pairs pcall rawequal rawget rawlen rawset
	select setmetatable tonumber tostring type warn xpcall
	coroutine.close coroutine.create coroutine.isyieldable coroutine.resume coroutine.running coroutine.status coroutine.wrap coroutine.yield
	table.concat table.insert table.move table.pack table.remove table.sort table.unpack
	string.byte string.char string.dump string.find string.format string.gmatch string.gsub string.len string.lower string.match
	string.pack string.packsize string.rep string.reverse string.sub string.unpack string.upper
	math.abs math.acos math.asin math.atan math.ceil math.cos math.deg math.exp math.floor math.fmod math.log math.max math.min math.modf
	math.rad math.random math.randomseed math.sin math.sqrt math.tan math.tointeger math.type math.ult
	utf8.char utf8.codepoint utf8.codes utf8.len utf8.offset
	string.meta.__add string.meta.__div string.meta.__idiv string.meta.__mod string.meta.__mul string.meta.__pow string.meta.__sub string.meta.__unm
	null.tostring os.date os.difftime os.time require`)

// TestEveryFunctionIsKnown checks that every Go function that a script can reach, including
// through the variables of preludes, is a host function that passes the Handler, or one of
// the functions above. A new function fails the test until it is reviewed.
func TestEveryFunctionIsKnown(t *testing.T) {
	t.Parallel()
	engine := newLuaEngine()
	found := map[string]bool{}
	note := lua.NewFunc("note", func(c *lua.Call) error {
		if f, ok := c.Arg(1).AsFunction(); ok && f.HostName() != "" {
			found[f.HostName()] = true
		}
		return nil
	})
	state, err := engine.open(t.Context(), runLimits{Limits: DefaultLimits()}, host.NewEnv(nil, host.DenyEffects("looking"), &host.Services{}), 1)
	if err != nil {
		t.Fatal(err)
	}
	state.Globals().SetString("note", note.Value())
	if err := state.Open(lua.DebugLib); err != nil {
		t.Fatal(err)
	}
	walk, err := state.Load(everythingReachable, "=walk")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Call(t.Context(), walk.Value()); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{}
	for _, m := range engine.modules {
		for _, f := range m.Funcs {
			hosts[strings.TrimPrefix(m.Name+"."+f.Name, ".")] = true
		}
	}
	var strange []string
	for name := range found {
		if !hosts[name] && !slices.Contains(bound, name) && !slices.Contains(computing, name) {
			strange = append(strange, name)
		}
	}
	sort.Strings(strange)
	if len(strange) > 0 {
		t.Errorf("functions that are neither the host's nor known to compute only: %s", strings.Join(strange, ", "))
	}
	for _, name := range []string{"fs.write", "mcp.call", "__run", "http.request", "parallel.__land", "events.__next"} {
		if !found[name] {
			t.Errorf("the walk did not find %s: it does not look everywhere", name)
		}
	}
}

// Every Handler executes the functions that only report something, so there must be
// few of them, and each must be listed.
var observers = []string{
	"__print", "log.debug", "log.info", "log.warn", "log.error", "progress",
	"otel.event", "otel.set_attribute", "otel.record_metric", "events.__want", "clock.start",
}

// TestEffectsHaveNamesOfTheManual checks that journals and plans name functions that a
// script can call.
func TestEffectsHaveNamesOfTheManual(t *testing.T) {
	t.Parallel()
	for _, m := range modules() {
		for i := range m.Funcs {
			name := strings.TrimPrefix(m.Name+"."+m.Funcs[i].Name, ".")
			if shown := host.ShownName(name); m.Funcs[i].Effect != nil && strings.Contains(shown, "__") {
				t.Errorf("%s is shown as %s", name, shown)
			}
		}
	}
}

// TestNothingBypassesTheHandler checks that every host function either computes, or
// passes the Handler with a kind.
func TestNothingBypassesTheHandler(t *testing.T) {
	t.Parallel()
	for _, m := range modules() {
		for i := range m.Funcs {
			f := &m.Funcs[i]
			name := strings.TrimPrefix(m.Name+"."+f.Name, ".")
			if trouble := bypass(t.Context(), m.Name, f); trouble != "" {
				t.Errorf("%s: %s", name, trouble)
			}
			if f.Pure == nil && f.Classify == nil && f.Kind == host.Observe && !slices.Contains(observers, name) {
				t.Errorf("%s: an effect without a kind", name)
			}
		}
	}
	leak := &host.Func{Name: "leak"}
	if bypass(t.Context(), "evil", leak) == "" {
		t.Error("a function that is neither pure nor an effect was not noticed")
	}
}

// bypass returns what is wrong with a function. It calls the function with a Handler that
// refuses, and without services: an effect that got through would fail differently.
func bypass(ctx context.Context, module string, f *host.Func) (trouble string) {
	if (f.Pure == nil) == (f.Effect == nil) {
		return "neither pure nor an effect, or both"
	}
	if f.Pure != nil || f.Classify == nil && f.Kind == host.Observe {
		return ""
	}
	defer func() {
		if r := recover(); r != nil {
			trouble = "it reached the world"
		}
	}()
	env := host.NewEnv(nil, host.DenyEffects("it is tried"), &host.Services{})
	if _, err := env.Call(ctx, module, f, []host.Value{"a", "b", "c"}); fault.CodeOf(err) != fault.Denied {
		return "it was answered, not refused"
	}
	return ""
}
