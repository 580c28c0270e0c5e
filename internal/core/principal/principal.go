// Package principal identifies the caller of a request: a Principal is put into the
// context by the endpoint that authenticates. It also has the scopes, and the type of a
// route with the scope it needs.
package principal

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
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

	// Keyless means that it came in where no key is needed, although the server may require
	// them elsewhere: over standard input, the socket of the data folder, or ZeroMQ.
	Keyless bool `json:"keyless,omitempty"`

	Scopes     []Scope   `json:"scopes,omitempty"`
	Namespaces []string  `json:"namespaces,omitempty"` // the only ones it can see, with * as wildcard; empty: all
	Tools      []string  `json:"tools,omitempty"`      // the only tools, as "space.name", or "name" for our own; empty: all
	Set        string    `json:"set,omitempty"`        // the set of tools outside of which nothing exists for it; empty: none
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
func (p Principal) Restricted() bool { return len(p.Namespaces) > 0 || len(p.Tools) > 0 || p.Set != "" }

// InSet returns it within a set of tools. That of its key counts before one it asks for.
func (p Principal) InSet(name string) Principal {
	p.Set = cmp.Or(p.Set, name)
	return p
}

// CanSee reports whether it can see a tool. Built-in tools have no namespace and are
// visible unless Tools excludes them, because the tools they reach are restricted too.
// With an empty name it reports whether any tool of the namespace may be visible.
// Namespaces and scripts of an organisation are for its members, by their names there.
func (p Principal) CanSee(space, name string) bool {
	if p.IsForeign(space) || space == "" && p.IsForeign(name) {
		return false
	}
	if shown := p.NameOf(space); shown != "" && len(p.Namespaces) > 0 && !slices.ContainsFunc(p.Namespaces, func(pattern string) bool { return Matches(pattern, shown) }) {
		return false
	}
	return len(p.Tools) == 0 || p.Names(p.Tools, space, name)
}

// Names reports whether one of the patterns, such as those of Tools, names a tool as it is
// called for p. With an empty name it reports whether it names any tool of the namespace.
func (p Principal) Names(patterns []string, space, name string) bool {
	if space == "" {
		name = p.NameOf(name)
	}
	space = p.NameOf(space)
	return slices.ContainsFunc(patterns, func(pattern string) bool { return names(pattern, space, name) })
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

// LoginOwner returns the ID under which its logins at upstreams, connections of its own and
// personal values are stored. A person's keys and clients use those of the person. The
// people for whom one key chats are not that key, and each has its own.
func (p Principal) LoginOwner() string {
	id := p.ID
	if p.IsGuest() { // guests use the owner's logins
		id = LocalID
	}
	if p.Person == "" || id == LocalID || strings.HasPrefix(id, PersonPrefix) {
		return id
	}
	return id + chatsFor + p.Person
}

const chatsFor = " for "

// SplitLoginOwner returns the parts of what LoginOwner returns: the ID, and the person for whom
// it chats as in Principal.Person, which may be empty.
func SplitLoginOwner(owner string) (id, person string) {
	id, person, _ = strings.Cut(owner, chatsFor)
	return id, person
}

// LacksLogin says why the owner of logins cannot log in anywhere with an account of their own,
// and what is possible; both are empty if it can. Only people who sign in and the owner of a
// server without keys open pages of this server as themselves.
func LacksLogin(owner string) (why, hint string) {
	const shared = "or an administrator gives the upstream one login for all"
	id, person := SplitLoginOwner(owner)
	switch {
	case id == LocalID || strings.HasPrefix(id, PersonPrefix):
		return "", ""
	case person == "":
		return id + " is not a person", "use a key or token of a person who is signed in (luanette login, POST /api/v1/me/keys), " + shared
	}
	_, user, _ := strings.Cut(person, "/")
	if plain, err := url.PathUnescape(user); err == nil {
		user = plain
	}
	return user + " is known only by " + id + ", and cannot log in here",
		"the application behind " + id + " lets " + user + " sign in here and sends that person's token (docs/people.md#people-of-a-chat-application), " + shared
}

// Owner says whose something is: the ID, person and organisation of the principal that
// made it. The zero Owner is the program itself.
type Owner struct {
	ID     string `json:"id,omitempty"`
	Person string `json:"person,omitempty"` // see Principal.Person
	Org    string `json:"org,omitempty"`
}

// Owner returns whose things are that p makes.
func (p Principal) Owner() Owner { return Owner{ID: p.ID, Person: p.Person, Org: p.ActingOrg()} }

// OwnerOf is Of(ctx).Owner(), without a copy of the principal.
func OwnerOf(ctx context.Context) Owner {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return p.Owner()
	}
	return Owner{ID: LocalID}
}

// Known reports whether an endpoint put a principal into ctx.
func Known(ctx context.Context) bool {
	_, ok := ctx.Value(principalKey{}).(*Principal)
	return ok
}

// Sees reports whether p may see what belongs to an owner. Events, traces, audit entries and
// artifacts are all decided here: their owner sees them, holders of the scope org those of
// their organisation, holders of observe those of their organisation or, without one, all,
// and administrators of the server all. Somebody who acts for a person in a chat sees
// nothing of others.
func (p Principal) Sees(o Owner) bool {
	switch {
	case p.Person != "":
		return p.is(o) && p.Person == o.Person
	case p.SeesAll():
		return true
	case p.Org != "" && p.Org == o.Org && p.SeesOrg():
		return true
	}
	return p.is(o)
}

// SeesAll reports whether p sees what everybody of every organisation makes, and what the
// program itself reports.
func (p Principal) SeesAll() bool {
	return p.Person == "" && (p.Admin() || p.Org == "" && slices.Contains(p.Scopes, Observe))
}

// SeesOrg reports whether p sees what everybody of its organisation makes.
func (p Principal) SeesOrg() bool {
	return p.Person == "" && p.Org != "" && (p.May(Org, p.Org) || slices.Contains(p.Scopes, Observe))
}

// is reports whether p is the owner. Somebody of one organisation is so only in that one.
func (p Principal) is(o Owner) bool { return p.ID == o.ID && (p.Org == "" || p.Org == o.Org) }

// KeyPrefix is the prefix of the IDs of keys of services, and of the Grant of people's keys.
const KeyPrefix = "key:"

// ByKey returns the principal of a person who uses a key of theirs: what it starts belongs to
// the person.
func (p Principal) ByKey(name string) Principal {
	p.Grant, p.Client = KeyPrefix+name, "key "+name
	return p
}

// OwnKey returns the name of the key with which a person acts; ok is false if it is not by a
// key, or by one of a service.
func (p Principal) OwnKey() (name string, ok bool) { return strings.CutPrefix(p.Grant, KeyPrefix) }

// KeyID returns what identifies the key of a person among those of everybody: PERSON/NAME, or
// PERSON/ORG/NAME. The ID of the person has both.
func KeyID(person, name string) string { return strings.TrimPrefix(person, PersonPrefix) + "/" + name }

// RuleNames returns by which names rules mean p. People choose the names of their keys: those are
// meant by their IDs only.
func (p Principal) RuleNames() []string {
	if name, ok := p.OwnKey(); ok {
		return []string{p.Name, KeyID(p.ID, name)}
	}
	return []string{p.Name}
}

// UnmarshalJSON reads a stored principal. Keys of people were once principals of their own,
// and had the person in "account".
func (p *Principal) UnmarshalJSON(data []byte) error {
	type plain Principal // without this method
	stored := struct {
		*plain
		Account string `json:"account"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	if name, ok := strings.CutPrefix(p.ID, KeyPrefix); ok && stored.Account != "" {
		*p = p.ByKey(name)
		p.ID, p.Limits, p.KeyLimits = stored.Account, Limits{}, p.Limits
	}
	return nil
}

// Limited is a part of a principal that has limits of its own.
type Limited struct {
	ID    string // counts the use
	Title string
	Limits
}

// Limited returns what has limits: the key of a person, and the person; one of them may have
// none. The use of a key counts for both.
func (p Principal) Limited() (list []Limited) {
	if name, ok := p.OwnKey(); ok && p.KeyLimits != (Limits{}) {
		list = append(list, Limited{p.ID + "/" + KeyPrefix + name, p.Title(), p.KeyLimits})
	}
	if p.Limits != (Limits{}) {
		p.Grant = "" // in a message they are the person's
		list = append(list, Limited{p.ID, p.Title(), p.Limits})
	}
	return list
}

var orgName = lazyregexp.New(`^[A-Za-z0-9](-?[A-Za-z0-9])*$`)

// CheckOrg refuses names of organisations that cannot be part of the name of a namespace.
func CheckOrg(name string) error {
	if len(name) > 32 || !orgName().MatchString(name) {
		return fault.New(fault.InvalidParams, "%q cannot be the name of an organisation", name).
			WithHint("use up to 32 letters, digits and single hyphens")
	}
	return nil
}

// InOrg returns the namespace of an organisation's own upstream, "github@acme", or the name
// of its own published script. An empty organisation is the server itself.
func InOrg(name, org string) string {
	if org == "" {
		return name
	}
	return name + "@" + org
}

// SplitNamespace returns the name and the organisation of a namespace or of a published
// script; the organisation is empty for those of the server.
func SplitNamespace(space string) (name, org string) {
	name, org, _ = strings.Cut(space, "@")
	return name, org
}

// ActingOrg returns the organisation that p acts in. For a key of all organisations it is,
// in a chat, that of the person there.
func (p Principal) ActingOrg() string {
	if name, _, in := strings.Cut(p.Person, "/"); in && p.Org == "" {
		if org, err := url.PathUnescape(name); err == nil {
			return org
		}
	}
	return p.Org
}

// ManagesOrg reports whether p manages the organisation that it is for, and nothing else. In a
// chat for somebody it does not.
func (p Principal) ManagesOrg() bool { return p.Org != "" && p.Person == "" && p.May(Org, p.Org) }

// CheckManages refuses those who do not manage an organisation.
func (p Principal) CheckManages(org string) error {
	if err := CheckOrg(org); err != nil {
		return err
	}
	if !p.May(Org, org) {
		return fault.New(fault.Denied, "%s does not manage the organisation %s", p.Title(), org).
			WithHint("use a key of that organisation with the scope org, or sign in there: `luanette login URL --org %s`", org)
	}
	return nil
}

// IsForeign reports whether a namespace or script is that of an organisation that p has
// nothing to do with. Administrators of the server see those of all, except in a chat for somebody.
func (p Principal) IsForeign(space string) bool {
	_, org := SplitNamespace(space)
	return org != "" && org != p.ActingOrg() && (p.Person != "" || !p.Admin())
}

// Namespace returns the namespace or script that a name stands for: that of the caller's
// organisation if it exists, else the server's.
func (p Principal) Namespace(name string, exists func(namespace string) bool) string {
	if org := p.ActingOrg(); org != "" {
		if own := InOrg(name, org); exists(own) {
			return own
		}
	}
	return name
}

// NameOf returns the name of a namespace or script for the caller: those of their own
// organisation are shown without it.
func (p Principal) NameOf(space string) string {
	if name, org := SplitNamespace(space); org != "" && org == p.ActingOrg() {
		return name
	}
	return space
}

// Visible returns the namespaces of a list that the caller can see. Those of the server
// are not seen if the caller's organisation has one of the same name.
func (p Principal) Visible(spaces []string) (list []string) {
	org := p.ActingOrg()
	for _, space := range spaces {
		if p.CanSee(space, "") && !(org != "" && slices.Contains(spaces, InOrg(space, org))) {
			list = append(list, space)
		}
	}
	return list
}
