package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/setup"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// set returns the set of tools that a principal is within; false if there is none for it.
func (p *process) set(who principal.Principal) (config.Set, bool) {
	set, ok := p.current().Sets[who.Set]
	return set, ok && (set.Org == "" || set.Org == who.ActingOrg())
}

// inSet reports whether a tool is in the set that a principal is within. In one that does not
// exist any more is nothing. Our own tools that reach others are in every set.
func (p *process) inSet(who principal.Principal, ref tool.Ref) bool {
	set, ok := p.set(who)
	switch {
	case !ok:
		return false
	case ref.Space == "" && (ref.Name == "" || slices.Contains(builtin.SetTools, ref.Name)):
		return true
	}
	if name, isPrompt := strings.CutPrefix(ref.Name, tool.GetsPrompt.Ref("", "").Name); isPrompt {
		return who.Names(set.Prompts, ref.Space, name)
	}
	if uri, isResource := strings.CutPrefix(ref.Name, tool.ReadsResource.Ref("", "").Name); isResource {
		isPage := strings.HasPrefix(uri, "ui://") && who.Names(set.Tools, ref.Space, "")
		return isPage || who.Names(set.Resources, ref.Space, uri)
	}
	patterns := set.Tools
	if ref.Name == "" { // anything of the namespace
		patterns = slices.Concat(set.Tools, set.Prompts, set.Resources)
	}
	return who.Names(patterns, ref.Space, ref.Name)
}

// setsFor are the names of the sets that exist for the caller.
func (p *process) setsFor(ctx context.Context) (names []string) {
	who := principal.Of(ctx)
	for _, name := range slices.Sorted(maps.Keys(p.current().Sets)) {
		of := who.InSet(name)
		if _, ok := p.set(of); ok && of.Set == name {
			names = append(names, name)
		}
	}
	return names
}

// menuOfSet returns what clients within the set of ctx are shown, "" if that is not set.
func (p *process) menuOfSet(ctx context.Context) string {
	set, _ := p.set(principal.Of(ctx))
	return set.Menu
}

// setCosts are the costs of the sets of the caller, and of what sets can be made.
func (in *parts) setCosts(ctx context.Context) (costs setup.SetCosts, err error) {
	if costs.Costs, err = in.menu.Sets(ctx, in.setsFor(ctx)); err != nil {
		return costs, err
	}
	costs.Parts, err = in.menu.SetParts(ctx)
	return costs, err
}

// sets are the sets of tools as the hub serves them.
type sets struct {
	*process
	menu *builtin.Menu
}

// Find returns an error if the principal's set does not exist for it.
func (s sets) Find(who principal.Principal) error {
	if _, ok := s.set(who); ok {
		return nil
	}
	return fault.New(fault.NotFound, "no set of tools named %q", who.Set).WithHint("`luanette set list` lists the sets")
}

// Includes tells whether the principal's set has tools of a namespace.
func (s sets) Includes(who principal.Principal, namespace string) bool {
	return s.inSet(who, tool.Ref{Space: namespace})
}

// Instructions are those of the set if there is one, and how to use our tools if these are listed.
func (s sets) Instructions(ctx context.Context) string {
	set, _ := s.set(principal.Of(ctx))
	return strings.TrimSpace(set.Instructions + "\n\n" + builtin.Instructions(s.menu.NameFor(ctx)))
}

var _ hub.Sets = sets{}
