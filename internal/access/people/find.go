package people

import (
	"context"

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
