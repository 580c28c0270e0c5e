package artifact

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Bytes are stored before the rows that refer to them, and removed after those. In between,
// a claim says that they are needed. So a content that a row refers to is never missing,
// and bytes always have a row in contents by which Collect finds them.

const (
	storing = 6 * time.Hour // until a claim of somebody who stores a content is that of a dead process
	inUse   = time.Hour     // how long a content stays for runs that found it before it was deleted
)

// claim is somebody who stores a content.
type claim struct {
	id    string
	owner principal.Owner
}

// claiming returns r so that its content is claimed when all of it was read, before it is
// stored. If it is too much for the quota of its owner's organisation, reading ends with an
// error and nothing is stored.
func (s *Store) claiming(ctx context.Context, c claim, r io.Reader) io.Reader {
	limit := s.limitOf(c.owner.Org)
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return cas.Guard(r, limit, func(ref cas.Ref, size int64) error {
		if ref.IsZero() { // it is larger than the quota
			return s.db.Read(ctx, func(tx *db.Tx) error { return s.checkQuota(ctx, tx, c.owner.Org, ref, size) })
		}
		return s.db.Write(ctx, func(tx *db.Tx) error {
			if err := s.checkQuota(ctx, tx, c.owner.Org, ref, size); err != nil {
				return err
			}
			return s.claim(ctx, tx, c.id, ref, size)
		})
	})
}

// claim stores that a content is being stored. Until somebody has it, nobody may read it;
// but bytes that no row knows are those of another program, and everybody's.
func (s *Store) claim(ctx context.Context, tx *db.Tx, id string, ref cas.Ref, size int64) error {
	now := s.clock.Now()
	foreign, err := s.blobs.Has(ctx, tx, ref)
	if err != nil {
		return err
	}
	restricted := 1
	if foreign {
		restricted = 0
	}
	_, err = tx.Exec(ctx, `INSERT INTO contents (hash, size, mime, created_at, restricted) VALUES ($1, $2, 'application/octet-stream', $3, $4)
		ON CONFLICT (hash) DO UPDATE SET restricted = CASE WHEN contents.restricted = 2 THEN 1 ELSE contents.restricted END`,
		ref.String(), size, now.UnixMicro(), restricted)
	if err != nil {
		return err
	}
	return addClaim(ctx, tx, id, ref, now.Add(storing))
}

func addClaim(ctx context.Context, tx *db.Tx, id string, ref cas.Ref, until time.Time) error {
	_, err := tx.Exec(ctx, "INSERT INTO content_claims (id, hash, until) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING", id, ref.String(), until.UnixMicro())
	return err
}

// settle ends a claim in the transaction that says who has the content.
func (s *Store) settle(ctx context.Context, tx *db.Tx, c claim, ref cas.Ref) error {
	result, err := tx.Exec(ctx, "DELETE FROM content_claims WHERE id = $1", c.id)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, cas.ErrRemoved)
	}
	return s.mustHave(ctx, tx, ref)
}

// unclaim ends a claim of a content that was not stored. If that fails, the claim ends by
// itself.
func (s *Store) unclaim(ctx context.Context, c claim) {
	_ = s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM content_claims WHERE id = $1", c.id)
		return err
	})
}

// mustHave returns cas.ErrRemoved if the bytes of a content are not stored.
func (s *Store) mustHave(ctx context.Context, tx *db.Tx, ref cas.Ref) error {
	if has, err := s.blobs.Has(ctx, tx, ref); err != nil || has {
		return err
	}
	return cas.ErrRemoved
}

// Use is called by transactions that store the hash of a content in a column that keeps it:
// see cas.Column. It is an error if the content does not exist any more.
func (s *Store) Use(ctx context.Context, tx *db.Tx, ref cas.Ref) error {
	_, err := tx.Exec(ctx, "UPDATE contents SET restricted = CASE WHEN restricted = 2 THEN 1 ELSE restricted END WHERE hash = $1", ref.String())
	if err == nil {
		err = s.mustHave(ctx, tx, ref)
	}
	if errors.Is(err, cas.ErrRemoved) {
		return fault.New(fault.NotFound, "the content %s was deleted", ref.Short()).WithHint("store it again: the same content gets the same hash")
	}
	return err
}

// putContent stores all of r for an owner, within the quota of the owner's organisation, and
// calls record in the transaction that says whose it is.
func (s *Store) putContent(ctx context.Context, owner principal.Owner, r io.Reader, mime string, record func(tx *db.Tx, ref cas.Ref, size int64) error) error {
	const tries = 3
	again, _ := r.(io.Seeker)
	var began int64
	if again != nil {
		var err error
		if began, err = again.Seek(0, io.SeekCurrent); err != nil {
			again = nil
		}
	}
	for try := 1; ; try++ {
		err := s.putOnce(ctx, claim{rand.Text(), owner}, r, mime, record)
		if !errors.Is(err, cas.ErrRemoved) {
			return err
		}
		if again == nil || try == tries {
			return fault.New(fault.Unavailable, "the same content was just deleted").WithHint("store it once more")
		}
		if _, err := again.Seek(began, io.SeekStart); err != nil {
			return err
		}
	}
}

func (s *Store) putOnce(ctx context.Context, c claim, r io.Reader, mime string, record func(tx *db.Tx, ref cas.Ref, size int64) error) error {
	ref, size, err := s.blobs.Put(ctx, s.claiming(ctx, c, r))
	if err == nil {
		err = s.db.Write(ctx, func(tx *db.Tx) error {
			err := s.checkQuota(ctx, tx, c.owner.Org, ref, size)
			if err == nil {
				err = s.own(ctx, tx, c.owner, Content{Hash: ref, Size: size, MIME: mime})
			}
			if err == nil {
				err = s.settle(ctx, tx, c, ref)
			}
			if err == nil {
				err = record(tx, ref, size)
			}
			return err
		})
	}
	if err != nil {
		s.unclaim(context.WithoutCancel(ctx), c)
	}
	return err
}
