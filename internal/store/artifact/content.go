package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
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

// StoreContent stores all of r without creating an artifact. Content that the caller has
// stored before keeps its first type, unless it had none.
func (s *Store) StoreContent(ctx context.Context, r io.Reader, mime string) (c Content, err error) {
	d, err := Details{MIME: mime}.checked()
	if err != nil {
		return Content{}, err
	}
	w, err := s.audience(ctx)
	if err != nil {
		return Content{}, err
	}
	err = s.putContent(ctx, w.own, r, d.MIME, func(tx *db.Tx, ref cas.Ref, size int64) error {
		c, _, err = describeContent(ctx, tx, w, ref)
		c.Size = size
		return err
	})
	return c, err
}

// own stores that somebody has a content. One that is known keeps who may read it: what
// everybody could read before stays so, and what the program stores becomes so.
func (s *Store) own(ctx context.Context, tx *db.Tx, owner principal.Owner, c Content) error {
	now, restricted := s.clock.Now().UnixMicro(), 1
	if owner == (principal.Owner{}) {
		restricted = 0
	}
	_, err := tx.Exec(ctx, `INSERT INTO contents (hash, size, mime, created_at, restricted) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (hash) DO UPDATE SET restricted = CASE WHEN contents.restricted < excluded.restricted THEN contents.restricted ELSE excluded.restricted END,
			mime = CASE WHEN contents.mime = 'application/octet-stream' THEN excluded.mime ELSE contents.mime END`,
		c.Hash.String(), c.Size, c.MIME, now, restricted)
	if err != nil || restricted == 0 {
		return err
	}
	if known, err := counted(ctx, tx, owner.Org, c.Hash); err != nil {
		return err
	} else if !known {
		if err := addStorage(ctx, tx, owner.Org, c.Size); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO content_owners (hash, owner, person, org, size, mime, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (hash, owner, person, org) DO UPDATE SET mime = excluded.mime WHERE content_owners.mime = 'application/octet-stream'`,
		c.Hash.String(), owner.ID, owner.Person, owner.Org, c.Size, c.MIME, now)
	return err
}

// Find returns the content that text names: a hash or a unique prefix of one, with
// or without "cas:", or an artifact's id. What the caller may not read is unknown.
func (s *Store) Find(ctx context.Context, text string) (Content, error) {
	w, err := s.audience(ctx)
	if err != nil {
		return Content{}, err
	}
	readable := readableContents{s, w, map[cas.Ref]Content{}}
	ref, err := cas.Resolve(ctx, readable, strings.TrimPrefix(text, idPrefix))
	if err != nil {
		return Content{}, err
	}
	c := readable.found[ref]
	c.Size, err = s.blobs.Stat(ctx, ref)
	return c, err
}

// readableContents are the contents that the caller may read.
type readableContents struct {
	store *Store
	w     audience
	found map[cas.Ref]Content
}

// Match returns those whose hash begins with prefix. The others count for no limit: their
// number is no larger than that of hashes with twelve equal digits.
func (r readableContents) Match(ctx context.Context, prefix string, limit int) (refs []cas.Ref, err error) {
	const others = 60
	all, err := r.store.blobs.Match(ctx, prefix, limit+others)
	if err != nil {
		return nil, err
	}
	err = r.store.db.Read(ctx, func(tx *db.Tx) error {
		refs = nil
		for _, ref := range all {
			c, readable, err := describeContent(ctx, tx, r.w, ref)
			if err != nil {
				return err
			}
			if readable || r.store.isPublic(ctx, ref) {
				refs, r.found[ref] = append(refs, ref), c
			}
		}
		return nil
	})
	return refs[:min(len(refs), limit)], err
}

// describeContent finds the type of a content, as an artifact or as stored content, and
// whether the caller may read it. A content that no table has is that of another program
// which uses the same folder, and everybody's.
func describeContent(ctx context.Context, tx *db.Tx, w audience, ref cas.Ref) (c Content, readable bool, err error) {
	c = Content{Hash: ref, MIME: "application/octet-stream"}
	var created int64
	query, args := w.rowsOf("artifacts", "mime, created_at", ref)
	err = tx.QueryRow(ctx, query+", number LIMIT 1", args...).Scan(&c.MIME, &created)
	if errors.Is(err, sql.ErrNoRows) {
		readable, created, err = describeStored(ctx, tx, w, &c)
	} else {
		readable = err == nil
	}
	if created != 0 {
		c.CreatedAt = time.UnixMicro(created)
	}
	return c, readable, err
}

// describeStored is describeContent for what is not an artifact that the caller sees: as
// the caller stored it, or else as whoever was the first.
func describeStored(ctx context.Context, tx *db.Tx, w audience, c *Content) (readable bool, created int64, err error) {
	sees, args := w.sees("o", 1)
	args = append(append([]any{c.Hash.String()}, args...), w.own.ID, w.own.Person, w.own.Org)
	n := len(args)
	var restricted, owned bool
	var mime string
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT c.restricted <> 0, o.hash IS NOT NULL, COALESCE(o.mime, c.mime), COALESCE(o.created_at, c.created_at)
		FROM contents c LEFT JOIN content_owners o ON o.hash = c.hash AND %s WHERE c.hash = $1
		ORDER BY CASE WHEN o.owner = $%d AND o.person = $%d AND o.org = $%d THEN 0 ELSE 1 END, o.created_at LIMIT 1`, sees, n-2, n-1, n), args...).
		Scan(&restricted, &owned, &mime, &created)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return true, 0, nil
	case err != nil || restricted && !owned && !w.all():
		return false, 0, err
	}
	c.MIME = mime
	return true, created, nil
}

// Stats counts the stored contents, artifacts and others, each once: all of them, or those
// of callers who do not see everything.
func (s *Store) Stats(ctx context.Context) (items, bytes int64, err error) {
	w, err := s.audience(ctx)
	if err != nil {
		return 0, 0, err
	}
	query, args := "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM contents", []any(nil)
	if !w.all() {
		var sees string
		sees, args = w.sees("content_owners", 0)
		query = "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM (SELECT DISTINCT hash, size FROM content_owners WHERE " + sees + ") AS visible"
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error { return tx.QueryRow(ctx, query, args...).Scan(&items, &bytes) })
	return items, bytes, err
}
