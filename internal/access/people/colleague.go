package people

import (
	"cmp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
)

// Colleague is a person as others of the organisation see them.
type Colleague struct {
	ID    string `json:"id"` // person:ID
	Name  string `json:"name"`
	Email string `json:"email,omitempty"`
}

// Colleagues lists the people of an organisation who are not blocked, by name, as they were
// last read.
func (s *Store) Colleagues(org string) []Colleague {
	list := []Colleague{}
	for id, p := range s.now.Load().people {
		if p.Blocked.IsZero() && p.in(org) {
			list = append(list, Colleague{principal.PersonID(id, ""), p.Name, p.Email})
		}
	}
	slices.SortFunc(list, func(a, b Colleague) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return list
}

// Roles lists the names of all roles.
func (s *Store) Roles() []string { return s.options.Roles.Names() }
