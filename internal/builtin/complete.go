package builtin

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// mostCompletions is MCP's limit per response.
const mostCompletions = 100

// Candidates returns the possible values of an argument.
type Candidates func(ctx context.Context) []string

// Completions suggests values for arguments of prompts and resource templates,
// by the name of the argument. Where one name means different things, the key is
// the prompt's name or the template's address, a space, and the argument's name.
type Completions map[string]Candidates

// Join merges several; for the same key the later one is used.
func Join(all ...Completions) Completions {
	joined := Completions{}
	for _, c := range all {
		maps.Copy(joined, c)
	}
	return joined
}

// NamespaceCompletions completes the names of servers and tools.
func NamespaceCompletions(c Catalog) Completions {
	tools := func(ctx context.Context) []string {
		var names []string
		for _, namespace := range append([]string{""}, c.Namespaces(ctx)...) {
			found, _ := c.In(ctx, namespace)
			for i := range found {
				names = append(names, found[i].Ref.String())
			}
		}
		return names
	}
	return Completions{"namespace": c.Namespaces, "name": c.Namespaces, "tool": tools, "names": tools}
}

// completionParams are the params of completion/complete that are used.
type completionParams struct {
	Ref struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	} `json:"ref"`
	Argument struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"argument"`
}

// Complete takes the params of completion/complete and returns its result: the
// candidates that begin with the typed text, ignoring case, and then those that
// contain it.
func (c Completions) Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p completionParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read completion request")
	}
	var candidates []string
	if f := c.of(p); f != nil {
		candidates = f(ctx)
	}
	values := matching(candidates, strings.ToLower(p.Argument.Value))
	total := len(values)
	return json.Marshal(map[string]any{"completion": map[string]any{
		"values": values[:min(total, mostCompletions)], "total": total, "hasMore": total > mostCompletions,
	}})
}

// of finds the candidates of an argument, the most specific key first.
func (c Completions) of(p completionParams) Candidates {
	if f := c[p.Ref.Name+p.Ref.URI+" "+p.Argument.Name]; f != nil {
		return f
	}
	return c[p.Argument.Name]
}

func matching(candidates []string, typed string) []string {
	begin, contain := []string{}, []string{}
	for _, c := range candidates {
		folded := strings.ToLower(c)
		if strings.HasPrefix(folded, typed) {
			begin = append(begin, c)
		} else if strings.Contains(folded, typed) {
			contain = append(contain, c)
		}
	}
	return append(begin, contain...)
}
