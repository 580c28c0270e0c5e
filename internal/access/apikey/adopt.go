package apikey

import (
	"context"
	"errors"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Adopt gives people what their keys made when it still belonged to the keys, by their names.
// It does nothing for keys that were made since, or that it has seen.
func (r *Store) Adopt(ctx context.Context, tables []personal.Table) error {
	var orphans []Key
	var names []string
	err := r.db.Read(ctx, func(tx *db.Tx) (err error) {
		if orphans, err = db.All(ctx, tx, scan, "SELECT "+columns+` FROM access_keys WHERE owner = '' AND rights LIKE '%"person":"%' ORDER BY name`); err != nil {
			return err
		}
		names, err = tx.Tables(ctx)
		return err
	})
	for _, k := range orphans {
		if err != nil || k.Person == "" {
			continue
		}
		for _, table := range tables {
			if slices.Contains(names, table.Name) {
				err = errors.Join(err, r.adopt(ctx, &k, table))
			}
		}
		if err == nil {
			err = r.db.Exec(ctx, "UPDATE access_keys SET owner = $2, version = version + 1 WHERE hash = $1", k.Hash[:], k.ref().owner)
		}
	}
	return err
}

// adopt gives the person the rows of one table. Where the person has rows with the same names,
// those of the key stay apart: they are exported and erased with the person.
func (r *Store) adopt(ctx context.Context, k *Key, table personal.Table) error {
	was, owner := principal.KeyPrefix+k.Name, k.ref().owner
	rename := func(to string) error {
		return r.db.Write(ctx, func(tx *db.Tx) error { return table.Rename(ctx, tx, was, to) })
	}
	err := rename(owner)
	if errors.Is(err, db.ErrUnique) {
		err = rename(owner + "/" + was)
	}
	return err
}
