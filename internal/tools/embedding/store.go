package embedding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Limits of what is stored.
const (
	loadedAtOnce = 100
	keepUnused   = 30 * 24 * time.Hour
	touchAfter   = 24 * time.Hour
)

// loadQuery has a fixed number of hashes, so that it is one statement to prepare.
var loadQuery = `SELECT hash, vector, used FROM embeddings WHERE model = $1 AND hash IN (` + marks(2, loadedAtOnce) + `)`

func marks(first, count int) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprint("$", first+i)
	}
	return strings.Join(all, ", ")
}

type stored struct {
	hash   string
	vector Vector
	used   time.Time
}

// load gives tools the vectors that are stored.
func (m *Model) load(ctx context.Context, t *Tools) error {
	for from := 0; from < len(t.hashes); from += loadedAtOnce {
		part := t.hashes[from:min(from+loadedAtOnce, len(t.hashes))]
		rows, err := m.read(ctx, part)
		if err != nil {
			return err
		}
		isOld := func(row stored) bool { return m.options.Clock.Now().Sub(row.used) > touchAfter }
		if slices.ContainsFunc(rows, isOld) {
			if err := m.save(ctx, rows); err != nil {
				return err
			}
		}
		for _, row := range rows {
			for i, hash := range part {
				if hash == row.hash {
					t.vectors[from+i].Store(row.vector)
				}
			}
		}
	}
	return nil
}

func (m *Model) read(ctx context.Context, hashes []string) (rows []stored, err error) {
	args := []any{m.options.Model}
	for _, hash := range append(slices.Clone(hashes), make([]string, loadedAtOnce-len(hashes))...) {
		args = append(args, hash)
	}
	err = m.db.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = db.All(ctx, tx, func(row db.Scanner) (s stored, err error) {
			var raw []byte
			var used int64
			err = row.Scan(&s.hash, &raw, &used)
			s.vector, s.used = vectorFrom(raw), time.UnixMicro(used)
			return s, err
		}, loadQuery, args...)
		return err
	})
	return slices.DeleteFunc(rows, func(s stored) bool { return s.vector == nil }), err
}

// save stores vectors as used now, and removes those that nobody has used for long.
func (m *Model) save(ctx context.Context, rows []stored) error {
	now := m.options.Clock.Now()
	return m.db.Write(ctx, func(tx *db.Tx) error {
		for _, row := range rows {
			if _, err := tx.Exec(ctx, `INSERT INTO embeddings (model, hash, vector, used) VALUES ($1, $2, $3, $4)
				ON CONFLICT (model, hash) DO UPDATE SET used = excluded.used`,
				m.options.Model, row.hash, row.vector.bytes(), now.UnixMicro()); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `DELETE FROM embeddings WHERE used < $1`, now.Add(-keepUnused).UnixMicro())
		return err
	})
}
