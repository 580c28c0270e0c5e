package profile

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Document is one document of each person or organisation.
type Document[T any] struct {
	table *table
	kind  string
	none  func() T      // where none is stored; nil means the zero value
	check func(T) error // of what is to be stored; may be nil
}

// NewDocument returns a further kind of document. Where none is stored, it is the zero value.
func NewDocument[T any](s *Store, kind string) *Document[T] {
	return &Document[T]{table: s.table, kind: kind}
}

// Of returns the document of a person or an organisation.
func (d *Document[T]) Of(ctx context.Context, p Person) (value T, err error) {
	err = d.table.db.Read(ctx, func(tx *db.Tx) error {
		value, err = d.load(ctx, tx, p)
		return err
	})
	return value, err
}

func (d *Document[T]) load(ctx context.Context, tx *db.Tx, p Person) (value T, err error) {
	if d.none != nil {
		value = d.none()
	}
	_, err = d.table.load(ctx, tx, p, d.kind, "", &value)
	return value, err
}

// Owners are the people and organisations with such a document.
func (d *Document[T]) Owners(ctx context.Context) ([]Person, error) {
	return db.Find(ctx, d.table.db, func(row db.Scanner) (p Person, err error) { return p, row.Scan(&p.Org, &p.User) },
		`SELECT org, person FROM talk_documents WHERE kind = $1 ORDER BY org, person`, d.kind)
}

// Set stores the document of a person or an organisation.
func (d *Document[T]) Set(ctx context.Context, p Person, value T) error {
	return d.table.db.Write(ctx, func(tx *db.Tx) error { return d.save(ctx, tx, p, value) })
}

func (d *Document[T]) save(ctx context.Context, tx *db.Tx, p Person, value T) error {
	if d.check != nil {
		if err := d.check(value); err != nil {
			return err
		}
	}
	return d.table.save(ctx, tx, p, d.kind, "", value)
}

// Change changes the document of a person or an organisation, and returns it. It may call
// change again if another node changes it too.
func (d *Document[T]) Change(ctx context.Context, p Person, change func(*T) error) (value T, err error) {
	err = d.table.db.Write(ctx, func(tx *db.Tx) error {
		if value, err = d.load(ctx, tx, p); err != nil {
			return err
		}
		if err := change(&value); err != nil {
			return err
		}
		return d.save(ctx, tx, p, value)
	})
	return value, err
}

// Remove removes the document of a person or an organisation, if there is one.
func (d *Document[T]) Remove(ctx context.Context, p Person) error {
	_, err := d.table.remove(ctx, p, d.kind, "")
	return err
}

// table has the documents, as JSON. There can be several of a kind, with names.
type table struct {
	db  *db.DB
	now func() time.Time
}

// load reads a document; if there is none, into is unchanged.
func (t *table) load(ctx context.Context, tx *db.Tx, p Person, kind, name string, into any) (found bool, err error) {
	var body string
	err = tx.QueryRow(ctx, `SELECT body FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 AND name = $4`,
		p.Org, p.User, kind, name).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal([]byte(body), into)
}

// save stores a document and replaces an existing one.
func (t *table) save(ctx context.Context, tx *db.Tx, p Person, kind, name string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO talk_documents (org, person, kind, name, body, updated) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (org, person, kind, name) DO UPDATE SET body = excluded.body, updated = excluded.updated`,
		p.Org, p.User, kind, name, string(text), t.now().UnixMicro())
	return err
}

// remove removes a document and reports whether it existed.
func (t *table) remove(ctx context.Context, p Person, kind, name string) (found bool, err error) {
	err = t.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 AND name = $4`,
			p.Org, p.User, kind, name)
		found = n > 0
		return err
	})
	return found, err
}

// names lists the documents of a kind.
func (t *table) names(ctx context.Context, tx *db.Tx, p Person, kind string) ([]string, error) {
	return db.All(ctx, tx, db.Column[string],
		`SELECT name FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 ORDER BY name`, p.Org, p.User, kind)
}
