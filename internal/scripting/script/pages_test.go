package script

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// pagedTools has a list of five numbers in three pages, and one that never ends.
type pagedTools struct{}

func (pagedTools) Tools(context.Context) ([]tool.Info, error) {
	info := func(name string) tool.Info {
		return tool.Info{Ref: tool.Ref{Space: "api", Name: name}, Input: json.RawMessage(`{"type":"object","properties":{"page_token":{"type":"string"}}}`)}
	}
	return []tool.Info{info("numbers"), info("endless")}, nil
}

func (pagedTools) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var in struct {
		From  int
		Token string `json:"page_token"`
	}
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	if call.Ref.Name == "endless" {
		return tool.Output("", map[string]any{"items": []int{1}, "next_page_token": "same"})
	}
	switch in.Token {
	case "":
		return tool.Output("", map[string]any{"items": []int{in.From, in.From + 1}, "next_page_token": "second"})
	case "second":
		return tool.Output("", map[string]any{"items": []int{}, "next_page_token": "third"})
	}
	return tool.Output("", map[string]any{"total": 5, "numbers": []int{in.From + 2, in.From + 3, in.From + 4}})
}

func TestPages(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(o *Options) { o.Tools = pagedTools{} })
	for _, c := range []struct{ language, source, want string }{
		{Lua, `local all = {} for n in mcp.api.numbers.pages{ from = 10 } do all[#all+1] = n end return all, mcp.api.numbers{ from = 1 }.next_page_token`, `[[10,11,12,13,14],"second"]`},
		{Lua, `for n in mcp.api.numbers.pages{ from = 1 } do if n == 2 then return n end end`, `2`},
		{Lua, `local ok, e = pcall(function() for n in mcp.api.endless.pages{} do end end) return ok, tostring(e):match("does not end")`, `[false,"does not end"]`},
		{JavaScript, `const all = []; for await (const n of mcp.api.numbers.pages({ from: 10 })) all.push(n); return [all, (await mcp.api.numbers({ from: 1 })).next_page_token]`, `[[10,11,12,13,14],"second"]`},
		{JavaScript, `try { for await (const n of mcp.api.endless.pages()) {} } catch (e) { return e.message.includes("does not end") }`, `true`},
	} {
		out, err := r.Run(t.Context(), Request{Source: c.source, Language: c.language})
		if err != nil || string(out.Result) != c.want {
			t.Errorf("%s\nreturned %s, error %v, want %s", c.source, out.Result, err, c.want)
		}
	}
}
