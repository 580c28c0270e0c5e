package artifact

import (
	"context"

	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Derived returns the sets of migrations and the tables of the index of words. They
// differ between databases, and Reindex fills them again.
var Derived = struct{ Sets, Tables []string }{
	Sets:   []string{"artifact_fts5", "artifact_tsvector"},
	Tables: []string{"artifact_words", "artifact_titles"},
}

// Reindex indexes the words of all artifacts, in a database whose index is empty.
func (s *Store) Reindex(ctx context.Context) error {
	const atOnce = 200
	for after := int64(0); ; {
		var refs []cas.Ref
		var last int64
		err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
			last = after
			refs, err = db.All(ctx, tx, scanRef, "SELECT hash FROM artifacts WHERE number > $1 ORDER BY number LIMIT $2", after, atOnce)
			for _, ref := range refs {
				a, err := load(ctx, tx, ref)
				if err != nil {
					return err
				}
				last = a.number
				if err := s.words.put(ctx, tx, &a); err != nil {
					return err
				}
			}
			return err
		})
		if err != nil || len(refs) < atOnce {
			return err
		}
		after = last
	}
}
