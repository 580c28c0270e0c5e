package artifact

import (
	"context"
	"database/sql"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// maxGenerations limits a walk up the ancestors.
const maxGenerations = 1000

// Ancestors returns the parent of ref, its parent and so on, nearest first, at most
// limit of them.
func (s *Store) Ancestors(ctx context.Context, ref cas.Ref, limit int) (line []Artifact, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		line = nil
		a, err := load(ctx, tx, w, ref)
		for err == nil && !a.Parent.IsZero() && len(line) < min(limit, maxGenerations) {
			if a, err = load(ctx, tx, w, a.Parent); err == nil {
				line = append(line, a)
			} else if fault.CodeOf(err) == fault.NotFound {
				return nil // it was deleted, or is not shown to the caller
			}
		}
		return err
	})
	return line, err
}

// Children returns a page of the artifacts made from ref, newest first.
func (s *Store) Children(ctx context.Context, ref cas.Ref, limit int) ([]Artifact, error) {
	page, err := s.Search(ctx, Query{Parent: ref, Limit: limit})
	return page.Artifacts, err
}

// Versions returns a page of the artifacts of one name, newest first.
func (s *Store) Versions(ctx context.Context, name string, limit int) ([]Artifact, error) {
	page, err := s.Search(ctx, Query{Name: name, Limit: limit})
	return page.Artifacts, err
}

// checkParent checks that the caller sees the parent, and that it does not descend from ref,
// which would create a cycle.
func checkParent(ctx context.Context, tx *db.Tx, w audience, ref, parent cas.Ref) error {
	if parent.IsZero() {
		return nil
	}
	for at, depth := parent, 0; !at.IsZero() && depth < maxGenerations; depth++ {
		if at == ref {
			return fault.New(fault.Conflict, "artifact %s cannot descend from itself", ref.Short()).
				WithHint("give the artifact it was really made from, or none")
		}
		var above string
		query, args := w.rowsOf("artifacts", "parent", at)
		err := tx.QueryRow(ctx, query+", number LIMIT 1", args...).Scan(&above)
		if errors.Is(err, sql.ErrNoRows) && at != parent {
			return nil // it was deleted, or is not shown to the caller
		}
		if errors.Is(err, sql.ErrNoRows) {
			return fault.Wrap(fault.NotFound, missing(at), "find parent").WithHint("store the parent first, or give none")
		}
		if err != nil {
			return err
		}
		at = cas.Ref{}
		if err := at.UnmarshalText([]byte(above)); err != nil {
			return err
		}
	}
	return nil
}
