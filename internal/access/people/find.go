package people

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
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

// refusedTokens returns whose tokens of issuers are refused: those of people who are
// blocked. The tokens themselves are valid until they expire.
func refusedTokens(ctx context.Context, tx *db.Tx) (map[string]error, error) {
	refused := map[string]error{}
	_, err := db.All(ctx, tx, func(row db.Scanner) (_ struct{}, err error) {
		var issuer, subject, name string
		if err = row.Scan(&issuer, &subject, &name); err == nil {
			refused[principal.TokenPrefix+issuer+"#"+subject] = errBlocked(name)
		}
		return struct{}{}, err
	}, "SELECT i.issuer, i.subject, p.name FROM people_identities i JOIN people p ON p.id = i.person WHERE p.blocked > 0")
	return refused, err
}
