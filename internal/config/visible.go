package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
)

// VisibleTo returns the configuration as somebody may see it. Only those who see everything
// see how others get in, and what other organisations have.
func (l *Loaded) VisibleTo(who principal.Principal) *Loaded {
	if who.SeesAll() {
		return l
	}
	shown, own := *l, who.ActingOrg()
	foreign := func(tool string) bool { // the name of an upstream, or of a tool of one
		space, _, _ := strings.Cut(tool, ".")
		return who.IsForeign(space)
	}
	shown.Warnings, shown.Keys, shown.Issuers, shown.Identity = nil, nil, nil, nil
	shown.Orgs = without(l.Orgs, func(name string) bool { return name != own })
	shown.Upstreams, shown.Tools = without(l.Upstreams, foreign), without(l.Tools, foreign)
	shown.Approvals, shown.Accepts = without(l.Approvals, foreign), without(l.Accepts, foreign)
	shown.Hooks = without(l.Hooks, func(name string) bool { org := l.Hooks[name].Org; return org != "" && org != own })
	shown.Policy = slices.DeleteFunc(slices.Clone(l.Policy), func(r PolicyRule) bool { return foreign(r.Tool) })
	shown.Readers = slices.DeleteFunc(slices.Clone(l.Readers), foreign)
	return &shown
}

// without returns a copy of a table without some of its entries.
func without[T any](entries map[string]T, drop func(name string) bool) map[string]T {
	rest := maps.Clone(entries)
	maps.DeleteFunc(rest, func(name string, _ T) bool { return drop(name) })
	return rest
}
