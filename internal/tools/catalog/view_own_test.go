package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// TestToolsOfOneCaller checks that a caller has a tool as it is defined for them, and none
// that only others have, however they ask for it.
func TestToolsOfOneCaller(t *testing.T) {
	t.Parallel()
	m := newMemory().with("tracker@acme", "file", `{"type":"object","properties":{"all":{"type":"string"}},"additionalProperties":false}`, nil)
	m = m.with("tracker@acme", "safe", `{"type":"object"}`, nil)
	anns := tool.Info{
		Ref: tool.Ref{Space: "tracker@acme", Name: "file"}, Description: "Archives walruses.",
		Input: json.RawMessage(`{"type":"object","properties":{"anns":{"type":"string"}},"additionalProperties":false}`), Raw: json.RawMessage(`{"name":"file","description":"Archives walruses."}`),
	}
	own := func(ctx context.Context) func(*tool.Info) (*tool.Info, bool) {
		if principal.Of(ctx).Name != "ann" {
			return nil
		}
		return func(info *tool.Info) (*tool.Info, bool) {
			if info.Name == "safe" {
				return nil, false
			}
			return &anns, true
		}
	}
	c := catalog.New(catalog.Options{Sources: []tool.Source{m}, Own: own, Hides: func(who principal.Principal) func(*tool.Info) bool {
		if who.Name != "ann" {
			return nil
		}
		return func(info *tool.Info) bool { return info.Name == "safe" }
	}})
	c.Expose("tracker@acme", catalog.Exposure{All: true})
	as := func(name string) context.Context {
		return principal.With(t.Context(), principal.Principal{ID: "key:" + name, Name: name, Org: "acme", Scopes: []principal.Scope{principal.MCP}})
	}
	for _, who := range []string{"ann", "bob", "ann"} {
		ctx, field := as(who), map[string]string{"ann": "anns", "bob": "all"}[who]
		listed, _ := c.Tools(ctx)
		exposed, _ := c.Exposed().Tools(ctx)
		within, _ := c.In(ctx, "tracker")
		found, ok := c.Find(ctx, ref("tracker", "file"))
		resolved, err := c.Resolve(ctx, "tracker__file")
		schema, _ := c.Exposed().InputSchema(ctx, "tracker__file")
		for what, text := range map[string]string{
			"Tools": string(listed[0].Input), "Exposed": string(exposed[0].Input), "In": string(within[0].Input),
			"Find": fmt.Sprintf("%s %v", found.Input, ok), "Resolve": fmt.Sprintf("%s %v", resolved.Input, err), "InputSchema": string(schema),
		} {
			if !strings.Contains(text, `"`+field+`"`) {
				t.Errorf("%s, %s: %s", who, what, text)
			}
		}
		if exposed[0].Name != "tracker__file" || found.Ref != ref("tracker", "file") || (len(listed) == 1) != (who == "ann") || len(exposed) != len(listed) {
			t.Errorf("%s: %v, %v, %v", who, listed, exposed, found.Ref)
		}
		if hits, _ := c.Search(ctx, catalog.Query{Text: "walruses"}); (len(hits) > 0) != (who == "ann") {
			t.Errorf("%s finds %d tools", who, len(hits))
		}
		for _, arg := range []string{"anns", "all"} {
			args := `{"` + arg + `":"x"}`
			_, err := c.Call(ctx, call("tracker", "file", args))
			if check := c.Check(ctx, call("tracker", "file", args)); (err == nil) != (arg == field) || (check == nil) != (err == nil) {
				t.Errorf("%s with %s: %v, %v", who, arg, err, check)
			}
		}
		if _, found := c.Find(ctx, ref("tracker", "safe")); found != (who == "bob") {
			t.Errorf("%s finds the safe: %v", who, found)
		}
		if _, err := c.Resolve(ctx, "tracker.safe"); (err == nil) != (who == "bob") || err != nil && fault.CodeOf(err) != fault.ToolNotFound {
			t.Errorf("%s resolves the safe: %v", who, err)
		}
	}
}
