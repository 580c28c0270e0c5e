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
	Menu      string          `json:"menu"`  // what clients see unless they ask for another
	Menus     []MenuCosts     `json:"menus"` // the smallest first
	All       int             `json:"all"`   // if every tool of every upstream were listed
	Upstreams []UpstreamCosts `json:"upstreams"`
}

// MenuCosts is the cost of a menu.
type MenuCosts struct {
	Name         string `json:"name"`
	Tools        int    `json:"tools"`        // number of tools
	Own          int    `json:"own"`          // tokens of our own tools
	Others       int    `json:"others"`       // tokens of exposed and pinned tools and of scripts
	Instructions int    `json:"instructions"` // tokens
	Tokens       int    `json:"tokens"`       // of all that
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
		Description: "Estimated number of tokens that each menu, server and tool takes in a model's context",
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
	costs := TokenCosts{Upstreams: []UpstreamCosts{}}
	m.mu.Lock()
	costs.Menu = m.options.Menu
	m.mu.Unlock()
	for _, name := range Menus {
		one, err := m.menuCosts(tool.WithMenu(ctx, name), name)
		if err != nil {
			return costs, err
		}
		costs.Menus = append(costs.Menus, one)
	}
	own, _ := c.In(ctx, "")
	costs.All = tokencount.Estimate(instructions) + listed(own)
	for _, namespace := range c.Namespaces(ctx) {
		u := upstreamCosts(ctx, c, namespace)
		costs.All += u.Tokens
		costs.Upstreams = append(costs.Upstreams, u)
	}
	slices.SortStableFunc(costs.Upstreams, func(a, b UpstreamCosts) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return costs, nil
}

// menuCosts returns the costs of the menu that ctx asks for.
func (m *Menu) menuCosts(ctx context.Context, name string) (MenuCosts, error) {
	shown, err := m.Tools(ctx)
	costs := MenuCosts{Name: name, Tools: len(shown), Instructions: tokencount.Estimate(instructions)}
	for i := range shown {
		if n := listed(shown[i : i+1]); m.options.Own(shown[i].Name) {
			costs.Own += n
		} else {
			costs.Others += n
		}
	}
	costs.Tokens = costs.Own + costs.Others + costs.Instructions
	return costs, err
}

func upstreamCosts(ctx context.Context, c Catalog, namespace string) UpstreamCosts {
	tools, _ := c.In(ctx, namespace)
	u := UpstreamCosts{Namespace: namespace, Tools: make([]ToolCosts, len(tools))}
	for i := range tools {
		u.Tools[i] = ToolCosts{tools[i].Name, listed(tools[i : i+1]), tokencount.Estimate(typedecl.TypeScript([]typedecl.Tool{typedecl.Of(&tools[i])}))}
		u.Tokens += u.Tools[i].Tokens
	}
	slices.SortStableFunc(u.Tools, func(a, b ToolCosts) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return u
}

// ListedTokens estimates how many tokens tools take when a client lists them.
func ListedTokens(tools []tool.Info) int { return listed(tools) }

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
