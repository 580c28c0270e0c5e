package artifact

import (
	"context"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Storage returns how many bytes the contents of an organisation have, each counted once.
func (s *Store) Storage(ctx context.Context, org string) (bytes int64, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		bytes, err = storageOf(ctx, tx, org)
		return err
	})
	return bytes, err
}

func storageOf(ctx context.Context, tx *db.Tx, org string) (bytes int64, err error) {
	err = tx.QueryRow(ctx, "SELECT COALESCE(SUM(size), 0) FROM (SELECT DISTINCT hash, size FROM content_owners WHERE org = $1) AS owned", org).Scan(&bytes)
	return bytes, err
}

// limitOf returns how many bytes the contents of an organisation may have; zero is no limit.
func (s *Store) limitOf(org string) int64 {
	if s.quota == nil || org == "" {
		return 0
	}
	return s.quota(org)
}

// withinQuota returns r so that reading it ends with an error if its content is too much for
// the quota of its owner's organisation: then nothing is stored. Others may store something
// at the same time, so the transaction that records the content checks again.
func (s *Store) withinQuota(ctx context.Context, owner principal.Owner, r io.Reader) io.Reader {
	limit := s.limitOf(owner.Org)
	if limit <= 0 {
		return r
	}
	return cas.Guard(r, limit, func(ref cas.Ref, size int64) error {
		return s.db.Read(ctx, func(tx *db.Tx) error { return s.checkQuota(ctx, tx, owner.Org, ref, size) })
	})
}

// checkQuota refuses a content that is too much for an organisation.
func (s *Store) checkQuota(ctx context.Context, tx *db.Tx, org string, ref cas.Ref, size int64) error {
	limit := s.limitOf(org)
	if limit <= 0 {
		return nil
	}
	var counted bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM content_owners WHERE org = $1 AND hash = $2)", org, ref.String()).Scan(&counted)
	if err != nil || counted {
		return err
	}
	used, err := storageOf(ctx, tx, org)
	if err != nil || used+size <= limit {
		return err
	}
	return fault.New(fault.Limit, "the contents of the organisation %s may have %d bytes together: they have %d, and this one has %d", org, limit, used, size).
		WithHint("delete artifacts and contents that nobody needs, with DELETE /api/v1/library/ID or HASH, or ask an administrator to raise orgs.%s.quota.storage_mb", org).
		WithDetails(storageDetails{limit, used, size, org})
}

// storageDetails are the details of a refusal.
type storageDetails struct {
	Limit  int64  `json:"limit_bytes"`
	Used   int64  `json:"used_bytes"`
	Wanted int64  `json:"wanted_bytes"`
	Org    string `json:"org"`
}

// restrict stores that nobody has a content: it was stored, but its owner may not have it.
func (s *Store) restrict(ctx context.Context, ref cas.Ref, size int64) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO contents (hash, size, mime, created_at, restricted) VALUES ($1, $2, 'application/octet-stream', $3, 1)
			ON CONFLICT (hash) DO NOTHING`, ref.String(), size, s.clock.Now().UnixMicro())
		return err
	})
}

// Release takes a content that is no artifact from the caller, or for those who administer it
// from everybody of the organisation: it counts for no quota any more, and they cannot read
// it. Nothing happens to the bytes.
func (s *Store) Release(ctx context.Context, name string) (Content, error) {
	c, err := s.Find(ctx, name)
	if err != nil {
		return c, err
	}
	who, own := principal.Of(ctx), ownerOf(ctx)
	where, args := "owner = $2 AND person = $3 AND org = $4", []any{c.Hash.String(), own.ID, own.Person, own.Org}
	switch {
	case who.Person != "":
	case who.Admin():
		where, args = "1 = 1", args[:1]
	case who.Org != "" && who.May(principal.Org, who.Org):
		where, args = "org = $2", []any{c.Hash.String(), who.Org}
	}
	return c, s.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, "DELETE FROM content_owners WHERE hash = $1 AND "+where, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fault.New(fault.Denied, "the content %s belongs to somebody else", c.Hash.Short()).WithHint("its owner and administrators of the organisation can delete it")
	})
}
