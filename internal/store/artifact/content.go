package artifact

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
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
	err = s.db.QueryRow(ctx, query, args...).Scan(&items, &bytes)
	return items, bytes, err
}

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
	n, err := tx.Exec(ctx, "DELETE FROM content_claims WHERE id = $1", c.id)
	if err != nil {
		return err
	}
	if n == 0 {
		return cas.ErrRemoved
	}
	return s.mustHave(ctx, tx, ref)
}

// unclaim ends a claim of a content that was not stored. If that fails, the claim ends by
// itself.
func (s *Store) unclaim(ctx context.Context, c claim) {
	_ = s.db.Exec(ctx, "DELETE FROM content_claims WHERE id = $1", c.id)
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

// putContent stores all of r for an owner, and calls record in the transaction that says whose
// it is.
func (s *Store) putContent(ctx context.Context, owner principal.Owner, r io.Reader, mime string, record func(tx *db.Tx, ref cas.Ref, size int64) error) error {
	return s.putBytes(ctx, owner, r, func(tx *db.Tx, ref cas.Ref, size int64) error {
		if err := s.own(ctx, tx, owner, Content{Hash: ref, Size: size, MIME: mime}); err != nil {
			return err
		}
		return record(tx, ref, size)
	})
}

// Keep stores all of r, which must be within the quota of the caller's organisation, for as
// long as the rows last that record adds to one of Options.Columns. It is nobody's content:
// only who knows such a row reads it.
func (s *Store) Keep(ctx context.Context, r io.Reader, record func(tx *db.Tx, ref cas.Ref) error) error {
	w, err := s.audience(ctx)
	if err != nil {
		return err
	}
	return s.putBytes(ctx, w.own, r, func(tx *db.Tx, ref cas.Ref, _ int64) error { return record(tx, ref) })
}

// putBytes stores all of r, within the quota of the owner's organisation, and calls record in
// the transaction that says who needs it.
func (s *Store) putBytes(ctx context.Context, owner principal.Owner, r io.Reader, record func(tx *db.Tx, ref cas.Ref, size int64) error) error {
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
		err := s.putOnce(ctx, claim{rand.Text(), owner}, r, record)
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

func (s *Store) putOnce(ctx context.Context, c claim, r io.Reader, record func(tx *db.Tx, ref cas.Ref, size int64) error) error {
	ref, size, err := s.blobs.Put(ctx, s.claiming(ctx, c, r))
	if err == nil {
		err = s.db.Write(ctx, func(tx *db.Tx) error {
			err := s.checkQuota(ctx, tx, c.owner.Org, ref, size)
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

// Contents lists the columns with hashes of contents.
func Contents() []cas.Column {
	return []cas.Column{
		{Table: "content_owners", Name: "hash", Where: cas.All},
		{Table: "artifacts", Name: "hash", Where: cas.All},
		{Table: "artifacts_deleted", Name: "hash", Where: cas.All}, // while they can be restored
		{Table: "content_claims", Name: "hash", Where: cas.All},    // while they last
		{Table: "contents", Name: "hash", Why: "the contents themselves"},
		{Table: cas.TableBlobs, Name: "hash", Why: "the bytes themselves"},
		{Table: cas.TableParts, Name: "hash", Why: "the bytes themselves"},
		{Table: "artifacts", Name: "parent", Why: "where something came from: nobody reads the parent by it"},
		{Table: "artifacts_deleted", Name: "record", Why: "the hash again, and the parent"},
	}
}

// collected is how often Run looks for contents to remove.
const collected = time.Hour

// Run removes contents that nobody needs, now and every hour, until ctx ends. All nodes may
// do it.
func (f *Files) Run(ctx context.Context, log *slog.Logger) {
	var following sync.WaitGroup
	defer following.Wait()
	if f.shared != nil {
		following.Go(func() { _ = f.shared.Follow(ctx) }) // until ctx ends
	}
	for {
		_, err := f.Collect(ctx)
		if err = errors.Join(err, f.sweep(ctx), f.recount(ctx)); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "contents not removed yet", "error", err)
		}
		if f.clock.Sleep(ctx, collected) != nil {
			return
		}
	}
}

// sweep removes files that no process finishes, and those of contents that other nodes
// removed.
func (f *Files) sweep(ctx context.Context) error {
	if f.shared != nil {
		return f.shared.Sweep(ctx)
	}
	f.folder.Sweep()
	return nil
}

// Collect removes the bytes of all contents that nobody has and that no row needs, and
// returns how many there were. Contents of everybody stay, and so do bytes in the folder
// that no row knows: other programs may use them. What fails is tried again the next time.
//
// First it stores which contents are to be removed. Then each is removed in a transaction
// of its own, unless somebody stored or used it meanwhile. So wherever the process dies,
// no content is missing that a row refers to.
func (s *Store) Collect(ctx context.Context) (removed int, err error) {
	s.collecting.Lock()
	defer s.collecting.Unlock()
	if err := s.expire(ctx); err != nil {
		return 0, err
	}
	unused, err := s.unused(ctx)
	if err != nil {
		return 0, err
	}
	const atOnce = 200
	last := ""
	for {
		refs, err := s.removable(ctx, unused, last, atOnce)
		if err != nil || len(refs) == 0 {
			return removed, err
		}
		last = refs[len(refs)-1].String()
		if err := s.condemn(ctx, unused, refs); err != nil {
			return removed, err
		}
		n, failed := s.removeAll(ctx, refs)
		if removed += n; failed != nil {
			return removed, failed
		}
	}
}

// expire deletes what kept contents until now: artifacts that can no longer be restored, and
// claims.
func (s *Store) expire(ctx context.Context) error {
	now := s.clock.Now()
	return s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM artifacts_deleted WHERE deleted_at < $1", now.Add(-restorable).UnixMicro())
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM content_claims WHERE until < $1", now.UnixMicro())
		}
		return err
	})
}

// unused returns the condition on rows of contents that nobody has and nothing needs.
func (s *Store) unused(ctx context.Context) (condition string, err error) {
	var tables []string
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		tables, err = tx.Tables(ctx)
		return err
	})
	parts := []string{"contents.restricted = 1"}
	for _, c := range slices.Concat(Contents(), s.columns) {
		switch {
		case c.Where == "" || !slices.Contains(tables, c.Table): // some parts of the server create their tables when they are first used
		case c.Where == cas.All:
			parts = append(parts, fmt.Sprintf("NOT EXISTS (SELECT 1 FROM %[1]s WHERE %[1]s.%[2]s = contents.hash)", c.Table, c.Name))
		default: // the few rows that need their content are found once
			parts = append(parts, fmt.Sprintf("contents.hash NOT IN (SELECT %[2]s FROM %[1]s WHERE %[3]s)", c.Table, c.Name, c.Where))
		}
	}
	return "(" + strings.Join(parts, " AND ") + ")", err
}

// removable returns contents that are unused, or that were to be removed before.
func (s *Store) removable(ctx context.Context, unused, after string, limit int) (refs []cas.Ref, err error) {
	return db.Find(ctx, s.db, scanRef, "SELECT hash FROM contents WHERE hash > $1 AND (contents.restricted = 2 OR "+unused+") ORDER BY hash LIMIT $2", after, limit)
}

// condemn stores that contents are to be removed, if they are still unused.
func (s *Store) condemn(ctx context.Context, unused string, refs []cas.Ref) error {
	args, places := make([]any, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		args[i], places[i] = ref.String(), fmt.Sprintf("$%d", i+1)
	}
	return s.db.Exec(ctx, "UPDATE contents SET restricted = 2 WHERE hash IN ("+strings.Join(places, ", ")+") AND "+unused, args...)
}

func (s *Store) removeAll(ctx context.Context, refs []cas.Ref) (removed int, err error) {
	for _, ref := range refs {
		done, failed := s.remove(ctx, ref)
		if done {
			removed++
		}
		err = errors.Join(err, failed)
	}
	return removed, err
}

// remove removes a content that is to be removed. Whoever stores or uses it at the same time
// changes the same row, and so waits for the end of this transaction or prevents it.
func (s *Store) remove(ctx context.Context, ref cas.Ref) (removed bool, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		removed = false
		n, err := tx.Exec(ctx, "UPDATE contents SET restricted = 2 WHERE hash = $1 AND restricted = 2", ref.String())
		if err != nil || n == 0 {
			return err
		}
		if err := s.blobs.Remove(ctx, tx, ref); err != nil {
			return err
		}
		removed = true
		_, err = tx.Exec(ctx, "DELETE FROM contents WHERE hash = $1", ref.String())
		return err
	})
	return removed && err == nil, err
}

// recount corrects sums of organisations that are not right. They are, unless somebody
// changed rows by hand.
func (s *Store) recount(ctx context.Context) error {
	const wrong = `SELECT org FROM org_storage WHERE bytes <>
		(SELECT COALESCE(SUM(size), 0) FROM (SELECT DISTINCT hash, size FROM content_owners WHERE content_owners.org = org_storage.org) AS owned)`
	var orgs []string
	orgs, err := db.Find(ctx, s.db, db.Column[string], wrong)
	for _, org := range orgs {
		if err == nil {
			err = s.db.Exec(ctx, "DELETE FROM org_storage WHERE org = $1", org)
		}
	}
	return err
}
