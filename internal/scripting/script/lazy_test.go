package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/scripting/host"
)

// TestUncertainOnlyAfterALook checks in both languages that the plan of a rehearsal is
// certain until the script looks into a made-up answer.
func TestUncertainOnlyAfterALook(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for code, want := range map[string]string{
		`const a = await mcp.calc.double({n: 1}); await mcp.calc.double({n: 2}); await mcp.calc.double({n: 3}); return 1`: "false false false",
		`const a = await mcp.calc.double({n: 1}); await mcp.calc.double({n: a.n}); await mcp.calc.double({n: 3})`:         "false true true",
		`const a = await mcp.calc.double({n: 1}); await mcp.calc.double({a}); await mcp.calc.double({n: 3})`:              "false true true",
		`const a = await mcp.calc.double({n: 1}); "n" in a; await mcp.calc.double({n: 1})`:                                "false true",
		`const a = await mcp.calc.double({n: 1}); Object.keys(a); await mcp.calc.double({n: 1})`:                          "false true",
		`local a = mcp.calc.double{n=1} mcp.calc.double{n=2} return 1`:                                                    "false false",
		`local a = mcp.calc.double{n=1} a.x = 1 mcp.calc.double{n=2}`:                                                     "false true",
		`local a = mcp.calc.double{n=1} local t = {a} mcp.calc.double{t=t}`:                                               "false true",
	} {
		language := Lua
		if strings.Contains(code, "await") {
			language = JavaScript
		}
		rehearsal := host.NewRehearsal(nil, nil, nil)
		if _, err := r.Run(t.Context(), Request{Source: code, Language: language, Handler: rehearsal}); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		var uncertain []string
		for _, p := range rehearsal.Plan() {
			uncertain = append(uncertain, fmt.Sprint(p.Uncertain))
		}
		if got := strings.Join(uncertain, " "); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
}
