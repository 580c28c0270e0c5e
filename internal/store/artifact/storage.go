package artifact

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Storage returns how many bytes the contents of an organisation have, each counted once.
func (s *Store) Storage(ctx context.Context, org string) (bytes int64, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		bytes, _, err = storageOf(ctx, tx, org)
		return err
	})
	return bytes, err
}

// storageOf returns how many bytes an organisation has, and whether that is stored.
func storageOf(ctx context.Context, tx *db.Tx, org string) (bytes int64, stored bool, err error) {
	err = tx.QueryRow(ctx, "SELECT bytes FROM org_storage WHERE org = $1", org).Scan(&bytes)
	if errors.Is(err, sql.ErrNoRows) {
		bytes, err = countStorage(ctx, tx, org)
		return bytes, false, err
	}
	return bytes, err == nil, err
}

// countStorage counts what an organisation has.
func countStorage(ctx context.Context, tx *db.Tx, org string) (bytes int64, err error) {
	err = tx.QueryRow(ctx, "SELECT COALESCE(SUM(size), 0) FROM (SELECT DISTINCT hash, size FROM content_owners WHERE org = $1) AS owned", org).Scan(&bytes)
	return bytes, err
}

// addStorage adds to what an organisation has, before that is in content_owners.
func addStorage(ctx context.Context, tx *db.Tx, org string, bytes int64) error {
	had, stored, err := storageOf(ctx, tx, org)
	switch {
	case err != nil:
		return err
	case stored:
		_, err = tx.Exec(ctx, "UPDATE org_storage SET bytes = $2 WHERE org = $1", org, had+bytes)
	default:
		_, err = tx.Exec(ctx, "INSERT INTO org_storage (org, bytes) VALUES ($1, $2)", org, had+bytes)
	}
	return err
}

// counted reports whether somebody of an organisation has a content.
func counted(ctx context.Context, tx *db.Tx, org string, ref cas.Ref) (counted bool, err error) {
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM content_owners WHERE org = $1 AND hash = $2)", org, ref.String()).Scan(&counted)
	return counted, err
}

// disown takes a content from the owners that a condition selects, whose arguments begin
// with the hash. It returns how many they were.
func disown(ctx context.Context, tx *db.Tx, ref cas.Ref, size int64, where string, args ...any) (count int, err error) {
	orgs, err := db.All(ctx, tx, scanText, "DELETE FROM content_owners WHERE hash = $1 AND "+where+" RETURNING org", append([]any{ref.String()}, args...)...)
	count = len(orgs)
	slices.Sort(orgs)
	for _, org := range slices.Compact(orgs) {
		if err != nil {
			return count, err
		}
		var others bool
		if others, err = counted(ctx, tx, org, ref); err == nil && !others {
			_, err = tx.Exec(ctx, "UPDATE org_storage SET bytes = bytes - $2 WHERE org = $1", org, size)
		}
	}
	return count, err
}

// limitOf returns how many bytes the contents of an organisation may have; zero is no limit.
func (s *Store) limitOf(org string) int64 {
	if s.quota == nil || org == "" {
		return 0
	}
	return s.quota(org)
}

// checkQuota refuses a content that is too much for an organisation.
func (s *Store) checkQuota(ctx context.Context, tx *db.Tx, org string, ref cas.Ref, size int64) error {
	limit := s.limitOf(org)
	if limit <= 0 {
		return nil
	}
	if counted, err := counted(ctx, tx, org, ref); err != nil || counted {
		return err
	}
	used, _, err := storageOf(ctx, tx, org)
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

// Release takes a content that is no artifact from the caller, or for those who administer it
// from everybody of the organisation: it counts for no quota any more, and they cannot read
// it. Collect removes the bytes if nobody else has it.
func (s *Store) Release(ctx context.Context, name string) (Content, error) {
	c, err := s.Find(ctx, name)
	if err != nil {
		return c, err
	}
	who, own := principal.Of(ctx), ownerOf(ctx)
	where, args := "owner = $2 AND person = $3 AND org = $4", []any{own.ID, own.Person, own.Org}
	switch {
	case who.Person != "":
	case who.Admin():
		where, args = "1 = 1", nil
	case who.Org != "" && who.May(principal.Org, who.Org):
		where, args = "org = $2", []any{who.Org}
	}
	id := rand.Text()
	return c, s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := disown(ctx, tx, c.Hash, c.Size, where, args...)
		if err == nil && n == 0 {
			err = fault.New(fault.Denied, "the content %s belongs to somebody else", c.Hash.Short()).WithHint("its owner and administrators of the organisation can delete it")
		}
		if err != nil {
			return err
		}
		return addClaim(ctx, tx, id, c.Hash, s.clock.Now().Add(inUse))
	})
}
