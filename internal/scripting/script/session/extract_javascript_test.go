package session

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// TestExtractJavaScript checks that an extracted function of script.JavaScript runs on its own
// with everything it uses.
func TestExtractJavaScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turns    []string
		params   string
		want     string
		warnings int
	}{
		"plain":      {turns: []string{"function plain(p) { return p.n * 2 }"}, params: `{"n":4}`, want: "8"},
		"helper":     {turns: []string{"function twice(n) { return 2 * n } let unused = 1", "let factor = 10; const helper = (p) => twice(p.n) * factor"}, params: `{"n":2}`, want: "40"},
		"data":       {turns: []string{"let words = ['a', { deep: [1, 2.5, null] }], seen = new Set([3]), by = new Map([['k', 5n]]), day = new Date(0)", "seen.add(4); function data() { return [words[1].deep[1], seen.size, Number(by.get('k')), day.getTime()] }"}, params: `{}`, want: "[2.5,2,5,0]"},
		"classes":    {turns: []string{"class Base { one() { return 1 } } class More extends Base { two() { return this === null ? undefined : this.one() + 1 } }", "async function classes() { return new More().two() }"}, params: `{}`, want: "2"},
		"calling":    {turns: []string{"(await double({ n: 1 })).n", "async function calling(p) { const a = await mcp.calc.double({ n: p.n }); const b = await double({ n: a.n }); return b.n }"}, params: `{"n":4}`, want: "16"},
		"main":       {turns: []string{"function main(p) { return p.n /* helper */ + 'x' }"}, params: `{"n":1}`, want: `"1x"`},
		"unwritable": {turns: []string{"class Odd { #n = 1 }; let odd = new Odd(); function unwritable() { return typeof odd }"}, params: `{}`, want: `"undefined"`, warnings: 1},
		"describing": {turns: []string{"function describe() { return { name: 'other', params: { n: { type: 'number', default: 3 } } } } function describing(p) { return p.n }"}, params: `{"n":3}`, want: "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openSessions(t, t.TempDir(), nil, Options{})
			for _, turn := range c.turns {
				if got := p.js(t, "work", turn); strings.HasPrefix(got, "error") {
					t.Fatal(got)
				}
			}
			w, err := p.Script(t.Context(), "ada", "work", name)
			if err != nil {
				t.Fatal(err)
			}
			if len(w.Warnings) != c.warnings {
				t.Errorf("warnings %q", w.Warnings)
			}
			done, err := p.runner.Run(t.Context(), script.Request{Source: w.Source, Language: script.JavaScript, Main: true, Params: []byte(c.params)})
			if err != nil || string(done.Result) != c.want {
				t.Errorf("%s\ngot %s, %v, want %s", w.Source, done.Result, err, c.want)
			}
		})
	}
	p := openSessions(t, t.TempDir(), nil, Options{})
	p.js(t, "work", "var x = 1")
	if _, err := p.Script(t.Context(), "ada", "work", "nothing"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("no function: %v", err)
	}
}
