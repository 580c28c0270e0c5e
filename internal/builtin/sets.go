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
			sets, err := m.Sets(ctx, names(ctx))
			return AsJSON(map[string]any{"sets": sets}, err)
		},
	}}
}

// Sets describes the sets of these names.
func (m *Menu) Sets(ctx context.Context, names []string) ([]ToolSet, error) {
	sets := []ToolSet{}
	for _, name := range names {
		set, err := m.set(principal.With(ctx, principal.Of(ctx).InSet(name)), name)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// SetParts is what sets can be made of, with what each menu shows of it.
type SetParts struct {
	Base  int       `json:"base"` // tokens of our tools that reach others, which the menu code lists in every set
	Tools []SetPart `json:"tools"`
}

// SetPart is a tool that a set can have.
type SetPart struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`         // in the menu direct
	Code   int    `json:"code,omitempty"` // in the menu code: 0 unless that lists it
}

// SetParts lists the tools of which the caller can make sets.
func (m *Menu) SetParts(ctx context.Context) (SetParts, error) {
	parts := SetParts{Tools: []SetPart{}}
	ctx = tool.WithoutApps(tool.WithMenu(ctx, MenuCode))
	shown, err := m.Tools(ctx)
	if err != nil {
		return parts, err
	}
	inCode := map[string]int{}
	for i := range shown {
		inCode[shown[i].Name] = listed(shown[i : i+1])
	}
	names, err := m.source.Refs(ctx)
	if err != nil {
		return parts, err
	}
	all, err := m.source.All(ctx)
	for i := range all {
		if name := names[all[i].Name].String(); slices.Contains(SetTools, name) {
			parts.Base += inCode[all[i].Name]
		} else {
			parts.Tools = append(parts.Tools, SetPart{name, listed(all[i : i+1]), inCode[all[i].Name]})
		}
	}
	return parts, err
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
