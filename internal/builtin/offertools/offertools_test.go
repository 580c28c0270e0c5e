package offertools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/offertools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/offers"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// own is what is offered.
type own struct{}

func (own) ListResources(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"uri":"doc://plan","name":"The plan","description":"What is built next."}`), json.RawMessage(`{"uri":"doc://logo"}`)}, nil
}

func (own) ListTemplates(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"uriTemplate":"doc://{name}"}`)}, nil
}

func (own) ReadResource(_ context.Context, uri string, _ *tool.Caller) (json.RawMessage, error) {
	return json.RawMessage(`{"contents":[{"uri":"` + uri + `","text":"Build it."},{"uri":"doc://logo","blob":"AAAA"}]}`), nil
}

func (own) ListPrompts(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"name":"review","description":"Reviews a plan.","arguments":[{"name":"topic"}]}`)}, nil
}

func (own) GetPrompt(_ context.Context, name string, args json.RawMessage, _ *tool.Caller) (json.RawMessage, error) {
	return json.RawMessage(`{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"` + name + ` ` + strings.ReplaceAll(string(args), `"`, `'`) + `"}}]}`), nil
}

func (own) Complete(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }

var ourSkills = builtin.Skills{func(context.Context) []builtin.Skill {
	return []builtin.Skill{{Name: "pay", Description: "Pays people."}}
}}

func TestOfferTools(t *testing.T) {
	t.Parallel()
	all := offers.New(offers.Options{Resources: own{}, Prompts: own{}, Completer: own{}, Skills: ourSkills, Links: &offers.Links{}})
	set := toolset.NewSet("", offertools.Tools(all))
	for _, c := range []struct{ name, args, want string }{
		{"resource_search", `{"query":"plans"}`, `"name":"doc://plan","title":"The plan"`},
		{"resource_search", `{"query":"plans","limit":1}`, `"total":2`},
		{"resource_search", `{"kind":"prompt"}`, `"arguments":[{"name":"topic"}]`},
		{"resource_search", `{"kind":"template"}`, `"found":[{"kind":"template","name":"doc://{name}"}]`},
		{"resource_search", `{"namespace":"other"}`, `"found":[],"total":0`},
		{"resource_search", `{"query":"pays people"}`, `"found":[{"kind":"skill","name":"skill://luanette/pay/SKILL.md","title":"pay"`},
		{"resource_read", `{"uri":"skill://luanette/pay/SKILL.md"}`, `name: pay`},
		{"resource_read", `{"uri":"doc://plan"}`, `"text":"Build it."`},
		{"prompt_get", `{"name":"review","arguments":{"topic":"x"}}`, `review {'topic':'x'}`},
	} {
		result, err := set.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: c.name}, Args: json.RawMessage(c.args)})
		if err != nil || !strings.Contains(string(result.Raw), c.want) {
			t.Errorf("%s %s: %s, %v", c.name, c.args, result.Raw, err)
		}
	}
}
