package artifact

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/store/db"
)

// Derived returns the sets of migrations and the tables of the index of words, which
// differ between databases and which Reindex fills again, and tables that are filled again
// when they are used.
var Derived = struct{ Sets, Tables []string }{
	Sets:   []string{"artifact_fts5", "artifact_tsvector"},
	Tables: []string{"artifact_words", "artifact_titles", "org_storage", "content_claims"},
}

// Reindex indexes the words of all artifacts, in a database whose index is empty.
func (s *Store) Reindex(ctx context.Context) error {
	const atOnce = 200
	for after := int64(0); ; {
		var rows []Artifact
		var last int64
		err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
			last = after
			rows, err = db.All(ctx, tx, scanRow, "SELECT "+columns+" FROM artifacts WHERE number > $1 ORDER BY number LIMIT $2", after, atOnce)
			for i := range rows {
				last = rows[i].number
				if err := errors.Join(loadDetails(ctx, tx, &rows[i]), s.words.put(ctx, tx, &rows[i])); err != nil {
					return err
				}
			}
			return err
		})
		if err != nil || len(rows) < atOnce {
			return err
		}
		after = last
	}
}
