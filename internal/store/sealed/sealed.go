// Package sealed encrypts the stored secrets again when the key that encrypts them was changed.
package sealed

import (
	"context"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

// Column is a column of secrets that a Box has encrypted.
type Column struct {
	Table, Name string
	// Of are the columns that say what a secret is bound to, all of them texts.
	Of []string
	// About returns that from their values.
	About func(of []string) []string
	Where string // which rows have a secret; "" is all
}

// Reseal encrypts the secrets of a column with the first key of the box, and returns how many of
// them were encrypted with another. One that no key opens stays as it is.
func (c Column) Reseal(ctx context.Context, store *db.DB, box secret.Box) (changed int, err error) {
	type row struct {
		secret []byte
		of     []string
	}
	query := fmt.Sprintf("SELECT %s FROM %s", strings.Join(append([]string{c.Name}, c.Of...), ", "), c.Table)
	if c.Where != "" {
		query += " WHERE " + c.Where
	}
	rows, err := db.Find(ctx, store, func(s db.Scanner) (row, error) {
		r := row{of: make([]string, len(c.Of))}
		into := []any{&r.secret}
		for i := range r.of {
			into = append(into, &r.of[i])
		}
		return r, s.Scan(into...)
	}, query)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		fresh, err := box.Reseal(r.secret, c.About(r.of)...)
		if err != nil || fresh == nil {
			continue // whoever uses it is told
		}
		// Each is unlike any other, and one that was changed meanwhile has the first key.
		update := fmt.Sprintf("UPDATE %s SET %s = $1 WHERE %s = $2", c.Table, c.Name, c.Name)
		if err := store.Exec(ctx, update, fresh, r.secret); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}
