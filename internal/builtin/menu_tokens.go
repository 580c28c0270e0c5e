package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/tokencount"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

// TokenCosts is the estimated number of tokens that tools take in a model's context.
type TokenCosts struct {
	Mode      string          `json:"mode"` // how clients see tools now: direct or code
	Menu      int             `json:"menu"` // what clients see now, including instructions
	Code      int             `json:"code"` // what they would see in code mode
	All       int             `json:"all"`  // if every tool of every upstream were listed
	Own       int             `json:"own"`  // part of All for built-in tools
	Upstreams []UpstreamCosts `json:"upstreams"`
}

// UpstreamCosts is the cost of one server's tools.
type UpstreamCosts struct {
	Namespace string      `json:"namespace"`
	Tokens    int         `json:"tokens"`
	Tools     []ToolCosts `json:"tools"` // most expensive first
}

// ToolCosts is the cost of one tool: listed directly, and as a declaration from
// get_tool_definitions.
type ToolCosts struct {
	Name       string `json:"name"`
	Tokens     int    `json:"tokens"`
	TypeScript int    `json:"typescript"`
}

// CostResources makes the resource with the token costs of tools.
func CostResources(c Catalog, m *Menu) []Resource {
	return []Resource{{
		URI: "lua://tokens", Name: "tokens", Title: "Token costs of tools", MIMEType: "application/json",
		Description: "Estimated number of tokens that each server and tool takes in a model's context",
		Read: func(ctx context.Context, _ string) (string, error) {
			costs, err := m.costs(ctx, c)
			if err != nil {
				return "", err
			}
			return asJSON(costs)
		},
	}}
}

func (m *Menu) costs(ctx context.Context, c Catalog) (TokenCosts, error) {
	shown, err := m.Tools(ctx)
	if err != nil {
		return TokenCosts{}, err
	}
	m.mu.Lock()
	code, from := m.code, m.from
	m.mu.Unlock()
	costs := TokenCosts{
		Mode: ModeDirect, Menu: tokencount.Estimate(m.Instructions(ctx)) + listed(shown),
		Code: tokencount.Estimate(codeInstructions) + listed(m.short(from)), Upstreams: []UpstreamCosts{},
	}
	if code {
		costs.Mode = ModeCode
	}
	own, _ := c.In(ctx, "")
	costs.Own = tokencount.Estimate(instructions) + listed(own)
	costs.All = costs.Own
	for _, namespace := range c.Namespaces(ctx) {
		tools, _ := c.In(ctx, namespace)
		u := UpstreamCosts{Namespace: namespace, Tools: make([]ToolCosts, len(tools))}
		for i := range tools {
			one := ToolCosts{tools[i].Name, listed(tools[i : i+1]), tokencount.Estimate(typedecl.TypeScript([]typedecl.Tool{typedecl.Of(&tools[i])}))}
			u.Tools[i] = one
			u.Tokens += one.Tokens
		}
		slices.SortStableFunc(u.Tools, func(a, b ToolCosts) int { return cmp.Compare(b.Tokens, a.Tokens) })
		costs.All += u.Tokens
		costs.Upstreams = append(costs.Upstreams, u)
	}
	slices.SortStableFunc(costs.Upstreams, func(a, b UpstreamCosts) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return costs, nil
}

// listed returns the cost of tools when a client lists them.
func listed(tools []tool.Info) int {
	n := 0
	for i := range tools {
		if tools[i].Raw != nil {
			n += tokencount.Estimate(string(tools[i].Raw))
			continue
		}
		raw, err := json.Marshal(map[string]any{
			"name": tools[i].Name, "description": tools[i].Description, "inputSchema": tools[i].Input,
		})
		if err == nil {
			n += tokencount.Estimate(string(raw))
		}
	}
	return n
}
