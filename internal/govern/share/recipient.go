package share

import (
	"cmp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Everybody is the recipient that stands for all of the organisation.
const Everybody = "org"

// rolePrefix is that of recipients that are roles.
const rolePrefix = "role:"

// recipient checks who gets a share of an organisation's thing, and returns it as stored.
func (s *Store) recipient(to, org string) (string, error) {
	if to == Everybody {
		return to, nil
	}
	if role, ok := strings.CutPrefix(to, rolePrefix); ok {
		return to, s.checkRole(role)
	}
	person, in, ok := principal.SplitPersonID(to)
	if !ok || in != "" && in != org {
		return "", fault.New(fault.InvalidParams, "%q cannot be a recipient", to).WithHint("person:ID, role:NAME or org, of the same organisation")
	}
	if !s.isMember(person, org) {
		return "", fault.New(fault.NotFound, "no person %s in this organisation", person).WithHint("GET /api/v1/people/colleagues lists them")
	}
	return principal.PersonID(person, ""), nil
}

func (s *Store) checkRole(role string) error {
	var names []string
	if s.options.People != nil {
		names = s.options.People.Roles()
	}
	if slices.Contains(names, role) {
		return nil
	}
	return fault.New(fault.NotFound, "no role %q", role).WithHint("there are: %v", names)
}

// isMember reports whether a person is in an organisation and not blocked, as they were
// last read.
func (s *Store) isMember(person, org string) bool {
	return s.options.People != nil && person != "" && s.options.People.Check(principal.PersonID(person, org)) == nil
}

// identities returns what shares call p, and the organisation whose shares reach it: the
// person, their roles, and everybody. They are those of this moment: who is blocked or left
// gets nothing.
func (s *Store) identities(p principal.Principal) (names []string, org string) {
	person, org, isPerson := principal.SplitPersonID(p.ID)
	if !isPerson {
		if p.Person != "" || p.ID == principal.Anonymous().ID {
			return nil, "" // a key that chats for others sees nothing but theirs
		}
		return []string{Everybody}, p.Org
	}
	if _, user, in := strings.Cut(p.Person, "/"); in && user != person || !s.isMember(person, org) {
		return nil, ""
	}
	names = []string{Everybody, principal.PersonID(person, "")}
	for _, m := range s.options.People.Known(person).Memberships {
		for _, role := range m.Roles {
			if m.Org == org {
				names = append(names, rolePrefix+role)
			}
		}
	}
	return names, org
}

// NameOf returns the name of a principal for people, given its ID.
func (s *Store) NameOf(id string) string {
	if person, _, ok := principal.SplitPersonID(id); ok {
		if s.options.People != nil {
			return cmp.Or(s.options.People.Known(person).Name, person)
		}
		return person
	}
	return strings.TrimPrefix(id, principal.KeyPrefix)
}

// recipientName returns the name of a recipient for people.
func (s *Store) recipientName(to, org string) string {
	if to == Everybody {
		return cmp.Or(org, "everybody")
	}
	return s.NameOf(strings.TrimPrefix(to, rolePrefix))
}
