package personal

import (
	"context"
	"strings"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Owners knows the principals that own connections to upstreams.
type Owners struct {
	People *people.Store // nil if nobody can sign in
	// Check returns an error for a person or key that may not do anything any more.
	Check func(id string) error
}

// Person returns who an owner is. An error says why nothing is done for them any more.
func (o Owners) Person(_ context.Context, owner string) (upstream.Person, error) {
	id, chatsFor := principal.SplitLoginOwner(owner)
	if err := o.Check(id); err != nil {
		return upstream.Person{}, err
	}
	if rest, ok := strings.CutPrefix(id, principal.PersonPrefix); ok && o.People != nil {
		person, org, _ := strings.Cut(rest, "/")
		known := o.People.Known(person)
		who := upstream.Person{ID: person, Name: known.Name, Org: org}
		if known.Verified { // upstreams take an address for a proof of who it is
			who.Email = known.Email
		}
		return who, nil
	}
	_, name, _ := strings.Cut(id, ":")
	org, user, chats := strings.Cut(chatsFor, "/")
	if chats {
		name = user
	}
	return upstream.Person{ID: owner, Name: name, Org: org}, nil
}

// Gone reports whether an owner may not do anything any more.
func (o Owners) Gone(owner string) bool {
	id, _ := principal.SplitLoginOwner(owner)
	return o.Check(id) != nil
}
