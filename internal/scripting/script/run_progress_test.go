package script

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// slowTools reports progress during each call.
type slowTools struct{ calcTools }

func (slowTools) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if call.Caller != nil && call.Caller.Progress != nil {
		call.Caller.Progress(tool.Progress{Progress: 3, Total: 10, Message: "mixing"})
	}
	return calcTools{}.Call(ctx, call)
}

// The caller of a script gets the script's progress and that of the tools it calls, and
// the progress always increases.
func TestProgressOfToolsReachesTheCaller(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(o *Options) { o.Tools = slowTools{} })
	for language, source := range map[string]string{
		Lua:        `mcp.calc.double{n = 1} progress(0.5, "half") mcp.calc.double{n = 1} progress(0.2, "back")`,
		JavaScript: `await mcp.calc.double({n: 1}); progress(0.5, "half"); await mcp.calc.double({n: 1}); progress(0.2, "back")`,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			var seen []tool.Progress
			caller := &tool.Caller{Progress: func(p tool.Progress) { seen = append(seen, p) }}
			if _, err := r.Run(t.Context(), Request{Source: source, Language: language, Caller: caller}); err != nil {
				t.Fatal(err)
			}
			var texts []string
			last := 0.0
			for _, p := range seen {
				texts = append(texts, p.Message)
				if p.Progress <= last || p.Total != 1 {
					t.Errorf("progress %v of %v after %v", p.Progress, p.Total, last)
				}
				last = p.Progress
			}
			if want := []string{"calc.double: mixing (3 of 10)", "half", "calc.double: mixing (3 of 10)", "back"}; !slices.Equal(texts, want) {
				t.Errorf("messages %s", strings.Join(texts, ", "))
			}
		})
	}
}
