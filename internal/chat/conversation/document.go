package conversation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/store/db"
)

// load reads a document of a person or an organisation; if there is none, into is
// unchanged.
func (r *Service) load(ctx context.Context, p Person, kind, name string, into any) (found bool, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		found, err = loadIn(ctx, tx, p, kind, name, into)
		return err
	})
	return found, err
}

func loadIn(ctx context.Context, tx *db.Tx, p Person, kind, name string, into any) (found bool, err error) {
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

// keep stores a document and replaces an existing one.
func (r *Service) keep(ctx context.Context, p Person, kind, name string, body any) error {
	return r.db.Write(ctx, func(tx *db.Tx) error { return r.keepIn(ctx, tx, p, kind, name, body) })
}

func (r *Service) keepIn(ctx context.Context, tx *db.Tx, p Person, kind, name string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO talk_documents (org, person, kind, name, body, updated) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (org, person, kind, name) DO UPDATE SET body = excluded.body, updated = excluded.updated`,
		p.Org, p.User, kind, name, string(text), r.now().UnixMicro())
	return err
}

// drop removes a document and reports whether it existed.
func (r *Service) drop(ctx context.Context, p Person, kind, name string) (found bool, err error) {
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `DELETE FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 AND name = $4`,
			p.Org, p.User, kind, name)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		found = n > 0
		return err
	})
	return found, err
}

// names lists the documents of a kind.
func (r *Service) names(ctx context.Context, p Person, kind string) (names []string, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		names, err = db.All(ctx, tx, func(row db.Scanner) (name string, err error) {
			return name, row.Scan(&name)
		}, `SELECT name FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 ORDER BY name`, p.Org, p.User, kind)
		return err
	})
	return names, err
}
