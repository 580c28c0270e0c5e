package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// A scope may have its own names for namespaces: two people may both have a server
// "wiki". So may organisations: a member's "github" is "github@acme", and a member's script
// "report" may be "report@acme". The methods of the catalog take and return the caller's
// names; sources, steps and events know the namespaces and scripts by their own.

// own returns the tool that a caller's name stands for.
func (c *Catalog) own(ctx context.Context, ref tool.Ref) tool.Ref {
	if scope := tool.ScopeOf(ctx); scope != nil {
		if space, named := scope.Names[ref.Space]; named {
			ref.Space = space
			return ref
		}
	}
	v, org := c.view.Load(), principal.Of(ctx).ActingOrg()
	if space, named := v.ofOrg(org)[ref.Space]; named {
		ref.Space = space
	} else if name, named := v.scriptsOf(org)[ref.Name]; named && ref.Space == "" {
		ref.Name = name
	}
	return ref
}

// Real returns the tool that a caller's name stands for, by its own name.
func (c *Catalog) Real(ctx context.Context, ref tool.Ref) tool.Ref { return c.own(ctx, ref) }

// shown returns the caller's name of a tool.
func shown(ctx context.Context, ref tool.Ref) tool.Ref {
	if scope := tool.ScopeOf(ctx); scope != nil {
		for name, space := range scope.Names {
			if space == ref.Space {
				return tool.Ref{Space: name, Name: ref.Name}
			}
		}
	}
	return shownTo(principal.Of(ctx), ref)
}

// shownTo returns the name of a tool for a member of its organisation.
func shownTo(who principal.Principal, ref tool.Ref) tool.Ref {
	if ref.Space == "" {
		return tool.Ref{Name: who.NameOf(ref.Name)}
	}
	return tool.Ref{Space: who.NameOf(ref.Space), Name: ref.Name}
}

// ofOrg returns the names that an organisation has for its own namespaces.
func (v *view) ofOrg(org string) map[string]string {
	if org == "" {
		return nil
	}
	return v.orgs[org]
}

// scriptsOf returns the names that an organisation has for its own scripts.
func (v *view) scriptsOf(org string) map[string]string {
	if org == "" {
		return nil
	}
	return v.scripts[org]
}

// isReplaced tells whether an organisation has another namespace or script of this name.
func (v *view) isReplaced(org string, ref tool.Ref) bool {
	_, space := v.ofOrg(org)[ref.Space]
	_, script := v.scriptsOf(org)[ref.Name]
	return space || script && ref.Space == ""
}

// orgsOf returns the names that each organisation has for its own namespaces or scripts.
func orgsOf(spaces []string) map[string]map[string]string {
	var all map[string]map[string]string
	for _, space := range spaces {
		name, org := principal.SplitNamespace(space)
		if org == "" {
			continue
		}
		if all == nil {
			all = map[string]map[string]string{}
		}
		if all[org] == nil {
			all[org] = map[string]string{}
		}
		all[org][name] = space
	}
	return all
}

// callerNames are the caller's names of namespaces, those of their scope before those of their
// organisation.
func (v *view) callerNames(ctx context.Context) map[string]string {
	ofOrg, scope := v.ofOrg(principal.Of(ctx).ActingOrg()), tool.ScopeOf(ctx)
	switch {
	case scope == nil || len(scope.Names) == 0:
		return ofOrg
	case len(ofOrg) == 0:
		return scope.Names
	}
	all := maps.Clone(ofOrg)
	maps.Copy(all, scope.Names)
	return all
}

// missing is the error for a tool that does not exist for the caller.
func (c *Catalog) missing(ctx context.Context, v *view, ref tool.Ref) error {
	return c.visible(ctx, v).missing(shown(ctx, ref))
}

// named is the view with the caller's names of namespaces and scripts.
func (v *view) named(names, scripts map[string]string) *view {
	n := &view{namespaces: map[string]*namespaceTools{}, names: v.names, exposed: v.exposed, aliases: map[string]tool.Ref{}}
	called, calledScript := inverted(names), inverted(scripts)
	for _, space := range v.sorted {
		s := v.namespaces[space]
		if name, renamed := called[space]; renamed {
			s = s.named(name, nil, n.aliases)
		} else if space == "" && len(scripts) > 0 {
			s = s.named("", calledScript, n.aliases)
		}
		n.namespaces[s.space] = s
		n.sorted = append(n.sorted, s.space)
		n.tools = append(n.tools, s.tools...)
	}
	return n
}

func inverted(names map[string]string) map[string]string {
	by := make(map[string]string, len(names))
	for name, real := range names {
		by[real] = name
	}
	return by
}

// named is the namespace under another name, with other names of some tools. Their spellings
// are added to aliases. It is searched by the same index.
func (s *namespaceTools) named(space string, called map[string]string, aliases map[string]tool.Ref) *namespaceTools {
	n := &namespaceTools{space: space, owner: s.owner, state: s.state, origin: s}
	n.reserve(len(s.tools))
	for _, info := range s.tools {
		source := s.entries[info.Name].source
		info.Space, info.Name = space, cmp.Or(called[info.Name], info.Name)
		n.put(info, source)
		for _, name := range []string{info.Name, info.Original} {
			if name != "" {
				aliases[tool.Ref{Space: space, Name: name}.String()] = info.Ref
				aliases[exposedAs(info.Ref.Space, name)] = info.Ref
			}
		}
	}
	for _, e := range n.entries {
		e.state = n.state
	}
	return n
}

// inNames returns an error of a call with the caller's names of namespaces in it.
func (c *Catalog) inNames(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	v := c.view.Load()
	names, scripts := v.callerNames(ctx), v.scriptsOf(principal.Of(ctx).ActingOrg())
	if len(names)+len(scripts) == 0 {
		return err
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.From(err)
	}
	texts := [3]string{err.Error(), fault.HintOf(err), string(f.Details)}
	was := texts
	for _, called := range []map[string]string{names, scripts} {
		for name, real := range called {
			for i := range texts {
				texts[i] = strings.ReplaceAll(texts[i], real, name)
			}
		}
	}
	if texts == was {
		return err
	}
	return &fault.Error{Code: f.Code, Hint: texts[1], Details: json.RawMessage(texts[2]), Err: renamedError{texts[0], err}}
}

// renamedError is an error with another text.
type renamedError struct {
	text string
	err  error
}

func (r renamedError) Error() string { return r.text }
func (r renamedError) Unwrap() error { return r.err }
