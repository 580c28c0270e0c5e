package artifact

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Content is content stored under its hash. It need not be an artifact.
type Content struct {
	Hash      cas.Ref
	Size      int64
	MIME      string
	CreatedAt time.Time // zero if unknown
}

// idPrefix begins the id of an artifact; digits of its hash follow.
const idPrefix = "artifact_"

// ID returns the id of the artifact of a content.
func ID(ref cas.Ref) string { return idPrefix + ref.Short() }

// StoreContent stores all of r without creating an artifact. Content that exists already
// keeps its first type, unless it had none.
func (s *Store) StoreContent(ctx context.Context, r io.Reader, mime string) (c Content, err error) {
	d, err := Details{MIME: mime}.checked()
	if err != nil {
		return Content{}, err
	}
	ref, size, err := s.blobs.Put(ctx, r)
	if err != nil {
		return Content{}, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO contents (hash, size, mime, created_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (hash) DO UPDATE SET mime = excluded.mime WHERE contents.mime = 'application/octet-stream'`,
			ref.String(), size, d.MIME, s.clock.Now().UnixMicro())
		if err != nil {
			return err
		}
		c, err = describeContent(ctx, tx, ref, size)
		return err
	})
	return c, err
}

// Find returns the content that text names: a hash or a unique prefix of one, with
// or without "cas:", or an artifact's id.
func (s *Store) Find(ctx context.Context, text string) (c Content, err error) {
	ref, err := cas.Resolve(ctx, s.blobs, strings.TrimPrefix(text, idPrefix))
	if err != nil {
		return Content{}, err
	}
	size, err := s.blobs.Stat(ctx, ref)
	if err != nil {
		return Content{}, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		c, err = describeContent(ctx, tx, ref, size)
		return err
	})
	return c, err
}

// describeContent finds the type of a content, as an artifact or as stored content.
func describeContent(ctx context.Context, tx *db.Tx, ref cas.Ref, size int64) (Content, error) {
	c := Content{Hash: ref, Size: size, MIME: "application/octet-stream"}
	var created int64
	for _, table := range []string{"artifacts", "contents"} {
		err := tx.QueryRow(ctx, "SELECT mime, created_at FROM "+table+" WHERE hash = $1", ref.String()).Scan(&c.MIME, &created)
		if err == nil {
			c.CreatedAt = time.UnixMicro(created)
			return c, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return Content{}, err
		}
	}
	return c, nil
}

// Stats counts the stored contents, artifacts and others, each once.
func (s *Store) Stats(ctx context.Context) (items, bytes int64, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT COUNT(*), COALESCE(SUM(size), 0) FROM
			(SELECT hash, size FROM artifacts UNION SELECT hash, size FROM contents) AS everything`).Scan(&items, &bytes)
	})
	return items, bytes, err
}
