package artifact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

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
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		refs, err = db.All(ctx, tx, scanRef, "SELECT hash FROM contents WHERE hash > $1 AND (contents.restricted = 2 OR "+unused+") ORDER BY hash LIMIT $2", after, limit)
		return err
	})
	return refs, err
}

// condemn stores that contents are to be removed, if they are still unused.
func (s *Store) condemn(ctx context.Context, unused string, refs []cas.Ref) error {
	args, places := make([]any, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		args[i], places[i] = ref.String(), fmt.Sprintf("$%d", i+1)
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE contents SET restricted = 2 WHERE hash IN ("+strings.Join(places, ", ")+") AND "+unused, args...)
		return err
	})
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
		result, err := tx.Exec(ctx, "UPDATE contents SET restricted = 2 WHERE hash = $1 AND restricted = 2", ref.String())
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
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
	err := s.db.Read(ctx, func(tx *db.Tx) (err error) {
		orgs, err = db.All(ctx, tx, scanText, wrong)
		return err
	})
	for _, org := range orgs {
		if err == nil {
			err = s.db.Write(ctx, func(tx *db.Tx) error {
				_, err := tx.Exec(ctx, "DELETE FROM org_storage WHERE org = $1", org)
				return err
			})
		}
	}
	return err
}
