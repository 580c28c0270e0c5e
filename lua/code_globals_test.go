package lua

import (
	"slices"
	"strings"
	"testing"
)

func TestGlobalsOfAChunk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		source, names string
		named         bool
	}{
		{"return 1", "", true},
		{"return a.b, c", "a c", true},
		{"x = 1 local y = 2 y = x", "x", true},
		{"function f() return function() g() end end", "f g", true},
		{"local f function f() return h[k] end", "h k", true},
		{"a.b.c, d = 1, 2", "a d", true},
		{"return _ENV.p", "p", true},
		{"return _ENV['p']", "p", true},
		{"return _ENV[p]", "p", false},
		{"return _ENV[1]", "", false},
		{"local e = _ENV", "", false},
		{"_ENV = {}", "", false},
		{"return function() return function(k) return _ENV[k] end end", "", false},
		{"_ENV:f()", "", false},
		{"local _ENV <const> = {} return a", "", true},
		{"local _ENV = {a = b} return function() return c end", "b", true},
		{"local function f(_ENV) return a, function() b = 1 end end", "", true},
		{"return function() local _ENV = _ENV return a end", "", false},
		{"return _G.x", "_G", true},
		{"for k in pairs(t) do goto done end ::done::", "pairs t", true},
	} {
		p, err := New(Options{}).Compile(test.source, "=chunk")
		if err != nil {
			t.Fatalf("%s: %v", test.source, err)
		}
		var names []string
		named := p.Globals(func(name string) { names = append(names, name) })
		slices.Sort(names)
		if got := strings.Join(slices.Compact(names), " "); got != test.names || named != test.named {
			t.Errorf("%s: globals %q, %v; want %q, %v", test.source, got, named, test.names, test.named)
		}
	}
}
