package principal

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Principal is the authenticated caller. Endpoints put it into the context, and all
// other packages only read it. It is stored as JSON with what outlives a request: jobs,
// schedules, messages.
type Principal struct {
	ID   string `json:"id"`             // identifies it in stored data, never empty: "local", "key:web", "oauth:…"
	Name string `json:"name,omitempty"` // for people
	Org  string `json:"org,omitempty"`  // the only organisation it is for; empty: any
	User string `json:"user,omitempty"` // the person behind it, where one is known

	// Person is for whom it acts in a chat, as "org/user", the org escaped; empty outside of chats. What it
	// starts there belongs to that person, and it sees nothing of others.
	Person string `json:"person,omitempty"`

	// Grant is what a person allowed a client, which acts for them; empty if nobody else does.
	// For a key of theirs it is "key:NAME".
	Grant string `json:"grant,omitempty"`
	// Client is the name of that client, as it calls itself, or "key NAME".
	Client string `json:"client,omitempty"`

	Scopes     []Scope   `json:"scopes,omitempty"`
	Namespaces []string  `json:"namespaces,omitempty"` // the only ones it can see, with * as wildcard; empty: all
	Tools      []string  `json:"tools,omitempty"`      // the only tools, as "space.name", or "name" for our own; empty: all
	Limits     Limits    `json:"limits,omitzero"`
	KeyLimits  Limits    `json:"key_limits,omitzero"` // of a person's key, besides those of the person
	Expires    time.Time `json:"expires,omitzero"`
}

// Limits of a principal. Zero means no limit.
type Limits struct {
	Rate       int `json:"rate,omitempty"`       // requests a minute
	Concurrent int `json:"concurrent,omitempty"` // tool calls at a time, those of its scripts included
	Budget     int `json:"budget,omitempty"`     // tool calls a day, likewise
}

// LocalID is the ID of the local owner.
const LocalID = "local"

// Local returns the owner of the machine, who may do everything: the command line, startup
// scripts, and the browser that signed in by a link of the server.
func Local() Principal { return Principal{ID: LocalID, Name: "local", Scopes: []Scope{Admin}} }

// GuestID is the ID of guests.
const GuestID = "guest"

// Guest returns a program on the machine of a server without keys that has not shown that it
// acts for the owner: it may use tools, and change nothing.
func Guest() Principal { return Principal{ID: GuestID, Name: "a guest", Scopes: []Scope{MCP}} }

// upstreamPrefix is the prefix of the IDs of upstreams that use this server.
const upstreamPrefix = "upstream:"

// UpstreamGuest returns the program of an upstream that may use this server: a guest of its
// own.
func UpstreamGuest(namespace string) Principal {
	p := Guest()
	p.ID, p.Name = upstreamPrefix+namespace, "upstream "+namespace
	return p
}

// IsGuest reports whether p is a guest.
func (p Principal) IsGuest() bool { return p.ID == GuestID || strings.HasPrefix(p.ID, upstreamPrefix) }

// ConnectsForAll reports whether it may connect upstreams by URL that everybody uses.
func (p Principal) ConnectsForAll() bool { return p.Admin() || p.IsGuest() }

type principalKey struct{}

// With returns ctx with the principal.
func With(ctx context.Context, p Principal) context.Context { return WithShared(ctx, &p) }

// WithShared is With without a copy: p must not be changed afterwards.
func WithShared(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Of returns the principal of ctx; without one it is the local owner.
func Of(ctx context.Context) Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return *p
	}
	return Local()
}

// PersonPrefix is the prefix of the IDs of people who sign in.
const PersonPrefix = "person:"

// TokenPrefix is the prefix of the IDs of those whom a trusted issuer's token names, before
// ISSUER#SUBJECT.
const TokenPrefix = "oauth:"

// PersonID returns the ID of a person in an organisation: "person:p1/acme". What is stored
// by owner is therefore separate in each organisation. Outside of them it is "person:p1".
func PersonID(person, org string) string {
	if org == "" {
		return PersonPrefix + person
	}
	return PersonPrefix + person + "/" + org
}

// SplitPersonID returns the person and the organisation of an ID; ok is false if it is not
// that of a person.
func SplitPersonID(id string) (person, org string, ok bool) {
	id, ok = strings.CutPrefix(id, PersonPrefix)
	if !ok {
		return "", "", false
	}
	person, org, _ = strings.Cut(id, "/")
	return person, org, true
}

// Anonymous returns a caller without a key or token where one is needed. It may use
// only what needs no scope.
func Anonymous() Principal { return Principal{ID: "nobody", Name: "nobody"} }

// Admin reports whether it may do everything, for all organisations.
func (p Principal) Admin() bool { return p.Org == "" && slices.Contains(p.Scopes, Admin) }

// May reports whether it has a scope for an organisation; an empty org means no
// particular one.
func (p Principal) May(scope Scope, org string) bool {
	if p.Org != "" && org != "" && p.Org != org {
		return false
	}
	switch {
	case p.Admin():
		return true
	case scope.exceeds(p.Org):
		return false
	case slices.Contains(p.Scopes, Admin): // of one organisation
		return true
	case (scope == Org || scope == Chat) && slices.Contains(p.Scopes, Org) && p.Org != "" && org == p.Org:
		return true
	default:
		return scope != Org && slices.Contains(p.Scopes, scope)
	}
}

// Title returns its name in messages: "the key web".
func (p Principal) Title() string {
	if strings.HasPrefix(p.ID, KeyPrefix) {
		return "the key " + p.Name
	}
	if key, ok := p.OwnKey(); ok {
		return "the key " + key + " of " + p.Name
	}
	return cmp.Or(p.Name, p.ID)
}

// Owns reports whether it may use what the principal with that ID created.
func (p Principal) Owns(id string) bool { return p.ID == cmp.Or(id, LocalID) || p.Admin() }

// OwnsOf reports whether it may use what another principal created.
func (p Principal) OwnsOf(creator Principal) bool {
	return p.Owns(creator.ID) && (p.Person == "" || p.Person == creator.Person)
}

// Restricted reports whether some tools are hidden from it.
func (p Principal) Restricted() bool { return len(p.Namespaces) > 0 || len(p.Tools) > 0 }

// CanSee reports whether it can see a tool. Built-in tools have no namespace and are
// visible unless Tools excludes them, because the tools they reach are restricted too.
// With an empty name it reports whether any tool of the namespace may be visible.
// Namespaces and scripts of an organisation are for its members, by their names there.
func (p Principal) CanSee(space, name string) bool {
	if p.IsForeign(space) || space == "" && p.IsForeign(name) {
		return false
	}
	if space == "" {
		name = p.NameOf(name)
	}
	space = p.NameOf(space)
	if space != "" && len(p.Namespaces) > 0 && !slices.ContainsFunc(p.Namespaces, func(pattern string) bool { return Matches(pattern, space) }) {
		return false
	}
	return len(p.Tools) == 0 || slices.ContainsFunc(p.Tools, func(pattern string) bool { return names(pattern, space, name) })
}

// names reports whether a pattern such as "fs.read_*" matches a tool. A pattern
// without a dot matches built-in tools, except that "*" matches all.
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

// Matches reports whether a name matches a pattern in which * stands for any
// characters.
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
