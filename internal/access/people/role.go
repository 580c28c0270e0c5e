package people

import (
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
)

// Role is a named set of rights.
type Role struct {
	Scopes []principal.Scope
	Tools  []string // the only tools, as in principal.Principal; empty: all
	Set    string   // of tools
	Limits principal.Limits
}

// Roles has the roles by name.
type Roles map[string]Role

// Standard are the roles that exist without configuration.
func Standard() Roles {
	return Roles{
		"admin":    {Scopes: []principal.Scope{principal.Admin}},
		"operator": {Scopes: []principal.Scope{principal.Org, principal.Chat, principal.MCP, principal.Read, principal.Observe, principal.Metrics}},
		"author":   {Scopes: []principal.Scope{principal.Chat, principal.MCP, principal.Read}},
		"user":     {Scopes: []principal.Scope{principal.Chat, principal.MCP}},
		"viewer":   {Scopes: []principal.Scope{principal.Read}},
	}
}

// With returns the roles with those of a configuration, which replace roles of the same
// name.
func (r Roles) With(more Roles) Roles {
	all := maps.Clone(r)
	maps.Copy(all, more)
	return all
}

// Names lists the roles.
func (r Roles) Names() []string { return slices.Sorted(maps.Keys(r)) }

// rights returns what somebody with several roles may do: everything that one of them
// permits. A role that does not exist any more permits nothing.
func (r Roles) rights(names []string) (all Role) {
	reaching, limits := []Role{}, []principal.Limits{}
	for _, name := range names {
		role, ok := r[name]
		if !ok {
			continue
		}
		for _, scope := range role.Scopes {
			if !slices.Contains(all.Scopes, scope) {
				all.Scopes = append(all.Scopes, scope)
			}
		}
		limits = append(limits, role.Limits)
		if role.reachesTools() { // that another restricts no tools means nothing
			reaching = append(reaching, role)
		}
	}
	all.Tools, all.Set = toolsOf(reaching)
	all.Limits = widest(limits)
	return all
}

// toolsOf returns the tools that somebody with several roles may use, nil for all, and the set
// that they are within. Nobody is within two sets, and with a role without one within none: the
// tools of another role must not be all those outside of its set.
func toolsOf(roles []Role) (tools []string, set string) {
	free := slices.DeleteFunc(slices.Clone(roles), func(r Role) bool { return r.Set != "" })
	switch {
	case len(free) > 0:
		roles = free
	case len(roles) > 0:
		roles, set = roles[:1], roles[0].Set
	}
	for _, role := range roles {
		if len(role.Tools) == 0 {
			return nil, set
		}
		tools = append(tools, role.Tools...)
	}
	return tools, set
}

// reachesTools reports whether somebody can call tools with the role.
func (r Role) reachesTools() bool {
	return slices.ContainsFunc(r.Scopes, func(s principal.Scope) bool { return s != principal.Read && s != principal.Metrics })
}

// widest returns the highest of several limits, where zero is none.
func widest(list []principal.Limits) (most principal.Limits) {
	for n, l := range list {
		if n == 0 {
			most = l
			continue
		}
		most = principal.Limits{
			Rate: wider(most.Rate, l.Rate), Concurrent: wider(most.Concurrent, l.Concurrent), Budget: wider(most.Budget, l.Budget),
		}
	}
	return most
}

func wider(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// Limit returns the scopes of a list that somebody has now. A key, a client or a job has
// at most the rights of its person, at any time.
func Limit(wanted []principal.Scope, now principal.Principal) []principal.Scope {
	if slices.Contains(wanted, principal.Admin) {
		return now.Scopes
	}
	var have []principal.Scope
	for _, scope := range wanted {
		if now.May(scope, now.Org) {
			have = append(have, scope)
		}
	}
	return have
}
