package principal

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Principal is who asks. Doors find it out once and put it into the context; what
// lies behind them only reads it there. It is kept as JSON with what outlives a
// request: jobs, schedules, messages.
type Principal struct {
	ID   string `json:"id"`             // stands for it in what is kept and compared, never empty: "local", "key:web", "oauth:…"
	Name string `json:"name,omitempty"` // for people
	Org  string `json:"org,omitempty"`  // the only organisation it is for; empty: any
	User string `json:"user,omitempty"` // the person behind it, where one is known

	Scopes     []Scope   `json:"scopes,omitempty"`
	Namespaces []string  `json:"namespaces,omitempty"` // the only ones it may see, * for any letters; empty: all
	Tools      []string  `json:"tools,omitempty"`      // the only tools, as "space.name", or "name" for our own; empty: all
	Limits     Limits    `json:"limits,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
}

// Limits bound how much somebody may do. Zero is without a bound.
type Limits struct {
	Rate       int `json:"rate,omitempty"`       // requests a minute
	Concurrent int `json:"concurrent,omitempty"` // tool calls at a time, those of its scripts included
	Budget     int `json:"budget,omitempty"`     // tool calls a day, likewise
}

// LocalID is the ID of the one who sits at the machine.
const LocalID = "local"

// Local is the owner of the machine, to whom everything is allowed: the command
// line, stdio, startup scripts, and everybody while there is no key at all.
func Local() Principal { return Principal{ID: LocalID, Name: "local", Scopes: []Scope{Admin}} }

type principalKey struct{}

// With returns ctx with who asks.
func With(ctx context.Context, p Principal) context.Context { return WithShared(ctx, &p) }

// WithShared is With for one that nobody changes any more.
func WithShared(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Of is who asks; without anybody it is the local owner.
func Of(ctx context.Context) Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return *p
	}
	return Local()
}

// Anonymous is who shows neither key nor token where one is needed. Nothing is
// allowed to it; what is open to everybody it can have.
func Anonymous() Principal { return Principal{ID: "nobody", Name: "nobody"} }

// Admin tells whether everything is open to it, whoever's it is.
func (p Principal) Admin() bool { return p.Org == "" && slices.Contains(p.Scopes, Admin) }

// May tells whether it is good for something of an organisation; an empty org is
// of none in particular.
func (p Principal) May(scope Scope, org string) bool {
	if p.Org != "" && org != "" && p.Org != org {
		return false
	}
	switch {
	case p.Admin():
		return true
	case scope == Admin:
		return false
	case slices.Contains(p.Scopes, Admin): // of one organisation
		return true
	case (scope == Org || scope == Chat) && slices.Contains(p.Scopes, Org) && p.Org != "" && org == p.Org:
		return true
	default:
		return scope != Org && slices.Contains(p.Scopes, scope)
	}
}

// Title names it in messages: "the key web".
func (p Principal) Title() string {
	if strings.HasPrefix(p.ID, "key:") {
		return "the key " + p.Name
	}
	return cmp.Or(p.Name, p.ID)
}

// Owns tells whether something that a principal of that ID made is its own to use.
func (p Principal) Owns(id string) bool { return p.ID == cmp.Or(id, LocalID) || p.Admin() }

// Restricted tells whether some tools are hidden from it.
func (p Principal) Restricted() bool { return len(p.Namespaces) > 0 || len(p.Tools) > 0 }

// CanSee tells whether a tool exists for it. Our own tools have no namespace; they
// are seen unless Tools leaves them out, for what they lead to is narrowed too. An
// empty name asks about a whole namespace: whether anything in it might.
func (p Principal) CanSee(space, name string) bool {
	if space != "" && len(p.Namespaces) > 0 && !slices.ContainsFunc(p.Namespaces, func(pattern string) bool { return Matches(pattern, space) }) {
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
		return space == "" && (name == "" || Matches(pattern, name))
	}
	return space != "" && Matches(of, space) && (name == "" || Matches(its, name))
}

// Matches compares a name with a pattern in which * stands for any letters.
func Matches(pattern, name string) bool {
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
