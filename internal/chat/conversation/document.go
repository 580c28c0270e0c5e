package conversation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/store/db"
)

// loadDocument reads a document of a person or an organisation; if there is none, into is
// unchanged.
func (r *Service) loadDocument(ctx context.Context, p Person, kind, name string, into any) (found bool, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		found, err = loadDocumentIn(ctx, tx, p, kind, name, into)
		return err
	})
	return found, err
}

func loadDocumentIn(ctx context.Context, tx *db.Tx, p Person, kind, name string, into any) (found bool, err error) {
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

// saveDocument stores a document and replaces an existing one.
func (r *Service) saveDocument(ctx context.Context, p Person, kind, name string, body any) error {
	return r.db.Write(ctx, func(tx *db.Tx) error { return r.saveDocumentIn(ctx, tx, p, kind, name, body) })
}

func (r *Service) saveDocumentIn(ctx context.Context, tx *db.Tx, p Person, kind, name string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO talk_documents (org, person, kind, name, body, updated) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (org, person, kind, name) DO UPDATE SET body = excluded.body, updated = excluded.updated`,
		p.Org, p.User, kind, name, string(text), r.now().UnixMicro())
	return err
}

// removeDocument removes a document and reports whether it existed.
func (r *Service) removeDocument(ctx context.Context, p Person, kind, name string) (found bool, err error) {
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

// documentNames lists the documents of a kind.
func (r *Service) documentNames(ctx context.Context, p Person, kind string) (names []string, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		names, err = db.All(ctx, tx, func(row db.Scanner) (name string, err error) {
			return name, row.Scan(&name)
		}, `SELECT name FROM talk_documents WHERE org = $1 AND person = $2 AND kind = $3 ORDER BY name`, p.Org, p.User, kind)
		return err
	})
	return names, err
}
