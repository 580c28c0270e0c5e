package script

import (
	"testing"

	"github.com/luanette/luanette/lua"
)

// TestLegible checks that a value without a JSON form is text where somebody looks at it, and that
// what is too large is refused.
func TestLegible(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"return 0/0 < 0, 1/0, 3, 2.5":    `[false,"inf",3,2.5]`,
		"return {1, print, x = {}}":      `{"1":1,"2":"function print","x":{}}`,
		"return {'<', {print}}":          `["<",["function print"]]`,
		"return {print, {}}":             `["function print",{}]`,
		"return {[1.5] = 1, [9] = 2}":    `{"1.5":1,"9":2}`,
		"return {nil, 2}, nil":           `[{"2":2},null]`,
		"return '\\xff'":                 "\"\uFFFD\"",
		"local t = {}; t.t = t return t": `{"t":"table"}`,
	} {
		if got, ok := legible(run(t, source)); !ok || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", source, got, ok, want)
		}
	}
	for _, source := range []string{
		"local t = {} for i = 1, 20000 do t[i] = i end return t",
		"return ('x'):rep(2000000)",
	} {
		if got, ok := legible(run(t, source)); ok {
			t.Errorf("%s: %d bytes", source, len(got))
		}
	}
}

func run(t *testing.T, source string) []lua.Value {
	t.Helper()
	state := lua.New(lua.Options{})
	if err := state.Open(lua.Sandboxed()...); err != nil {
		t.Fatal(err)
	}
	chunk, err := state.Load(source, "=test")
	if err != nil {
		t.Fatal(err)
	}
	values, err := state.Call(t.Context(), chunk.Value())
	if err != nil {
		t.Fatal(err)
	}
	return values
}
