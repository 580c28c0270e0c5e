package people

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/store/db"
)

// Find returns the person with an identity; the zero Person if there is none.
func (s *Store) Find(ctx context.Context, i Identity) (p Person, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		id, err := personOf(ctx, tx, i)
		if err != nil || id == "" {
			return err
		}
		all, err := one(ctx, tx, id)
		p = all[id]
		return err
	})
	return p, err
}

// Source returns the provider that says that a person is in an organisation; empty if they
// are not. It uses the people as they were last read.
func (s *Store) Source(person, org string) string {
	list := s.now.Load().people[person].Memberships
	at := slices.IndexFunc(list, func(m Membership) bool { return m.Org == org })
	if at < 0 {
		return ""
	}
	return list[at].Source
}
