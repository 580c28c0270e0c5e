package principal

import (
	"context"
	"slices"
)

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
