package builtin

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// ToolSet is a set of tools as its clients see it.
type ToolSet struct {
	Name    string      `json:"name"`
	Address string      `json:"address"` // at the server
	Menu    string      `json:"menu"`
	Listed  int         `json:"listed"` // number of tools that clients are shown
	Tokens  int         `json:"tokens"` // of these, without the instructions
	Tools   []ToolCosts `json:"tools"`  // what is in it, besides our own that reach it
}

// SetResources makes the resource with the sets of tools.
func SetResources(m *Menu, names func(context.Context) []string) []Resource {
	return []Resource{{
		URI: "lua://sets", Name: "sets", Title: "Sets of tools", MIMEType: "application/json",
		Description: "The sets of tools, their tools, and what their clients are shown",
		Read: func(ctx context.Context, _ string) (string, error) {
			all := struct {
				Sets []ToolSet `json:"sets"`
			}{[]ToolSet{}}
			for _, name := range names(ctx) {
				set, err := m.set(principal.With(ctx, principal.Of(ctx).InSet(name)), name)
				if err != nil {
					return "", err
				}
				all.Sets = append(all.Sets, set)
			}
			return AsJSON(all, nil)
		},
	}}
}

// set describes the set of tools that ctx is within.
func (m *Menu) set(ctx context.Context, name string) (ToolSet, error) {
	shown, err := m.Tools(tool.WithoutApps(tool.WithMenu(ctx, "")))
	if err != nil {
		return ToolSet{}, err
	}
	set := ToolSet{Name: name, Address: "/mcp/sets/" + name, Menu: m.NameFor(tool.WithMenu(ctx, "")), Listed: len(shown), Tokens: listed(shown), Tools: []ToolCosts{}}
	inside, err := m.source.Visible(ctx)
	for i := range inside {
		if one := inside[i].Ref; one.Space != "" || !slices.Contains(SetTools, one.Name) {
			set.Tools = append(set.Tools, costsOf(&inside[i], one.String()))
		}
	}
	return set, err
}
