package session

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// TestExtractFunctions checks that an extracted function runs on its own with
// everything it uses: each script must return what the session returns.
func TestExtractFunctions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turns    []string
		params   string
		want     string
		warnings int
	}{
		"plain":      {turns: []string{"function plain(p) return p.n * 2 end"}, params: `{"n":4}`, want: "8"},
		"helper":     {turns: []string{"function twice(n) return 2 * n end unused = 1", "factor = 10\nfunction helper(p)\n  return twice(p.n) * factor\nend"}, params: `{"n":2}`, want: "40"},
		"counter":    {turns: []string{"local n = 5 function counter() n = n + 1 return n + peek() end function peek() return n end", "counter()"}, params: `{}`, want: "14"},
		"data":       {turns: []string{"words = { 'a\\n', 'b', { deep = { 1, 2.5, true } } } self = { list = {} } self.me = self function data() return #words, words[3].deep[2], self.me.me == self end"}, params: `{}`, want: "[3,2.5,true]"},
		"methods":    {turns: []string{"Account = {} Account.__index = Account function Account.new(n) return setmetatable({ n = n }, Account) end function Account:add(k) self.n = self.n + k return self end", "mine = Account.new(5)", "function methods(p) return mine:add(p.k).n, getmetatable(mine) == Account end"}, params: `{"k":2}`, want: "[7,true]"},
		"oneline":    {turns: []string{"a = function() return 'a' end b = function(x) return 'b' .. x end function oneline() return a() .. b(1) end"}, params: `{}`, want: `"ab1"`},
		"calling":    {turns: []string{"double = mcp.calc.double function calling(p) return double { n = p.n }.n + #map({ 1, 2 }, tostring) end"}, params: `{"n":4}`, want: "10"},
		"main":       {turns: []string{"function main(p) -- a comment with end in it\n  local s = 'function end' if p.n then for i = 1, 2 do repeat s = s .. i until true end end return s end"}, params: `{"n":1}`, want: `"function end12"`},
		"upper":      {turns: []string{"string.shout = nil local inner = { up = function(s) return s:upper() end } function upper(p) return inner.up(p.s) end"}, params: `{"s":"x"}`, want: `"X"`},
		"thread":     {turns: []string{"co = coroutine.create(print) function thread() return co end"}, params: `{}`, want: "null", warnings: 1},
		"describing": {turns: []string{"function describe() return { name = 'other', params = { n = { type = 'number', default = 3 } } } end function describing(p) return p.n end"}, params: `{"n":3}`, want: "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openSessions(t, t.TempDir(), nil, Options{Memory: 1})
			id := p.create(t)
			for _, turn := range c.turns {
				p.say(t, id, turn)
			}
			before, err := p.load(t.Context(), "ada", id, noVersion)
			if err != nil {
				t.Fatal(err)
			}
			written, err := p.Script(t.Context(), "ada", id, name)
			if err != nil || len(written.Warnings) != c.warnings {
				t.Fatalf("%v, warnings %q\n%s", err, written.Warnings, written.Source)
			}
			got, err := p.runner.Run(t.Context(), script.Request{Source: written.Source, Params: []byte(c.params), Main: true})
			if err != nil || string(got.Result) != c.want {
				t.Errorf("got %s, %v, want %s\n%s", got.Result, err, c.want, written.Source)
			}
			if strings.Contains(written.Source, "unused") {
				t.Errorf("the script has functions that main does not use:\n%s", written.Source)
			}
			if after, err := p.load(t.Context(), "ada", id, noVersion); err != nil || string(after.state) != string(before.state) {
				t.Errorf("the session changed, %v", err)
			}
		})
	}
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	if _, err := p.Script(t.Context(), "ada", id, "nothing"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a session without functions: %v", err)
	}
}
