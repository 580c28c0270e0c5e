package access

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Principal is who asks. Doors find it out once and put it into the context; what
// lies behind them only reads it there.
type Principal struct {
	ID   string // stands for it in what is kept and compared, never empty: "local", "key:web", "oauth:…"
	Name string // for people
	Org  string // the only organisation it is for; empty: any
	User string // the person behind it, where one is known

	Scopes     []Scope
	Namespaces []string // the only ones it may see; empty: all
	Tools      []string // the only tools, as "space.name", "*" for any part of a name; empty: all
	Expires    time.Time
}

// LocalID is the ID of the one who sits at the machine.
const LocalID = "local"

// Local is the owner of the machine, to whom everything is allowed: the command
// line, stdio, startup scripts, and everybody while there is no key at all.
func Local() Principal { return Principal{ID: LocalID, Name: "local", Scopes: []Scope{Admin}} }

type principalKey struct{}

// With returns ctx with who asks.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, &p)
}

// Of is who asks; without anybody it is the local owner.
func Of(ctx context.Context) Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return *p
	}
	return Local()
}

// Admin tells whether everything is open to it, whoever's it is.
func (p Principal) Admin() bool { return p.Org == "" && slices.Contains(p.Scopes, Admin) }

// May tells whether it is good for something of an organisation; an empty org is
// of none in particular.
func (p Principal) May(scope Scope, org string) bool {
	if p.Org != "" && org != "" && p.Org != org {
		return false
	}
	switch {
	case slices.Contains(p.Scopes, Admin):
		return p.Org == "" || scope != Admin
	case scope == Admin:
		return false
	case slices.Contains(p.Scopes, Org):
		return p.Org != "" && org == p.Org
	default:
		return slices.Contains(p.Scopes, scope)
	}
}

// Narrowed tells whether some tools are hidden from it.
func (p Principal) Narrowed() bool { return len(p.Namespaces) > 0 || len(p.Tools) > 0 }

// Sees tells whether a tool exists for it. Our own tools have no namespace; they
// are seen unless Tools leaves them out, for what they lead to is narrowed too. An
// empty name asks about a whole namespace: whether anything in it might.
func (p Principal) Sees(space, name string) bool {
	if space != "" && len(p.Namespaces) > 0 && !slices.ContainsFunc(p.Namespaces, func(pattern string) bool { return matches(pattern, space) }) {
		return false
	}
	return len(p.Tools) == 0 || slices.ContainsFunc(p.Tools, func(pattern string) bool { return names(pattern, space, name) })
}

// names tells whether a pattern such as "fs.read_*" is about a tool. One without
// a dot is about our own tools, except that "*" is about all.
func names(pattern, space, name string) bool {
	if pattern == "*" {
		return true
	}
	of, its, dotted := strings.Cut(pattern, ".")
	if !dotted {
		return space == "" && (name == "" || matches(pattern, name))
	}
	return space != "" && matches(of, space) && (name == "" || matches(its, name))
}

// matches compares a name with a pattern in which * stands for any letters.
func matches(pattern, name string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for {
		var part string
		if part, rest, starred = strings.Cut(rest, "*"); !starred {
			return strings.HasSuffix(name, part)
		}
		_, after, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = after
	}
}
