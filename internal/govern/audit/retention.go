package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// retentionInterval is how often old entries are deleted.
const retentionInterval = time.Hour

// RunRetention deletes entries that are older than Options.Keep and Options.KeepOrgs allow,
// and what they have beside them that is older than Options.Activity, now and every hour
// until ctx ends.
func (l *Log) RunRetention(ctx context.Context) {
	for l != nil {
		erased, err := l.DeleteOld(ctx, l.limits(l.options.Clock.Now()))
		if err != nil && ctx.Err() == nil {
			l.options.Log.WarnContext(ctx, "old audit entries not deleted", "error", err)
		}
		if err := l.ForgetActivity(ctx, l.options.Clock.Now().Add(-l.options.Activity)); err != nil && ctx.Err() == nil {
			l.options.Log.WarnContext(ctx, "old activity not deleted", "error", err)
		}
		if erased > 0 {
			l.RecordAction(ctx, "audit.erase", fmt.Sprintf("%d entries", erased), nil)
		}
		if l.options.Clock.Sleep(ctx, retentionInterval) != nil {
			return
		}
	}
}

// limits are the times before which entries are old.
func (l *Log) limits(now time.Time) AgeLimits {
	a := AgeLimits{Orgs: map[string]time.Time{}}
	if l.options.Keep > 0 {
		a.Before = now.Add(-l.options.Keep)
	}
	for org, keep := range l.options.KeepOrgs {
		if a.Orgs[org] = (time.Time{}); keep > 0 {
			a.Orgs[org] = now.Add(-keep)
		}
	}
	return a
}

// AgeLimits are the times before which entries are old. The zero time means never.
type AgeLimits struct {
	Before time.Time
	Orgs   map[string]time.Time // instead, for single organisations
}

// condition selects entries that are old.
func (a AgeLimits) condition(c *conditions) string {
	others := c.value(db.UnixMicro(a.Before))
	text := `at < ` + others
	for _, org := range slices.Sorted(maps.Keys(a.Orgs)) {
		text += ` AND org <> ` + c.value(column(org))
	}
	text = `(` + text + `)`
	for _, org := range slices.Sorted(maps.Keys(a.Orgs)) {
		text += ` OR (org = ` + c.value(column(org)) + ` AND at < ` + c.value(db.UnixMicro(a.Orgs[org])) + `)`
	}
	return `(` + text + `)`
}

// deletedAtOnce bounds the entries that one transaction deletes, and erasedAtOnce those
// that it erases.
const (
	deletedAtOnce = 10_000
	erasedAtOnce  = 500
)

// DeleteOld deletes the old entries at the beginning of each chain, and stores up to where
// it was cut, with the hash of the last deleted entry. If some organisations keep entries
// longer than others, there are old entries behind others too: their contents are erased,
// and they stay as links of the chain. It returns how many were erased.
func (s *Store) DeleteOld(ctx context.Context, limits AgeLimits) (erased int, err error) {
	chains, err := s.Chains(ctx)
	if err != nil {
		return 0, err
	}
	for _, c := range chains {
		if _, err := s.repeat(ctx, func(tx *db.Tx) (int, bool, error) { return deleteSome(ctx, tx, c.Node, limits) }); err != nil {
			return erased, err
		}
		if len(limits.Orgs) == 0 {
			continue
		}
		n, err := s.repeat(ctx, func(tx *db.Tx) (int, bool, error) { return eraseSome(ctx, tx, c.Node, limits) })
		if erased += n; err != nil {
			return erased, err
		}
	}
	return erased, nil
}

// repeat runs transactions until one reports that there is no more, and adds up their
// counts.
func (s *Store) repeat(ctx context.Context, some func(tx *db.Tx) (count int, more bool, err error)) (all int, err error) {
	for more := true; more; {
		var count int
		err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
			count, more, err = some(tx)
			return err
		})
		if err != nil {
			return all, err
		}
		all += count
	}
	return all, nil
}

// deleteSome deletes entries at the beginning of a chain, up to the first that is not old,
// and reports whether there may be more.
func deleteSome(ctx context.Context, tx *db.Tx, node string, limits AgeLimits) (count int, more bool, err error) {
	var where conditions
	var first, next sql.NullInt64
	inChain := `node = ` + where.value(node)
	err = tx.QueryRow(ctx, `SELECT (SELECT min(seq) FROM audit_log WHERE `+inChain+`),
		(SELECT seq FROM audit_log WHERE `+inChain+` AND NOT `+limits.condition(&where)+` ORDER BY seq LIMIT 1)`, where.args...).Scan(&first, &next)
	if err != nil || !first.Valid {
		return 0, false, err
	}
	end := first.Int64 + deletedAtOnce // the first that stays
	if more = true; next.Valid && next.Int64 <= end {
		end, more = next.Int64, false
	}
	var text string
	err = tx.QueryRow(ctx, `SELECT entry FROM audit_log WHERE node = $1 AND seq < $2 ORDER BY seq DESC LIMIT 1`, node, end).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	e, err := decode(text)
	if err != nil || e.Hash == "" {
		return 0, false, nil //nolint:nilerr // it was changed: Verify reports it
	}
	if _, err := tx.Exec(ctx, `DELETE FROM audit_log WHERE node = $1 AND seq <= $2`, node, e.Seq); err != nil {
		return 0, false, err
	}
	_, err = tx.Exec(ctx, `UPDATE audit_chains SET cut = $1, cut_hash = $2 WHERE node = $3`, e.Seq, e.Hash, node)
	return int(e.Seq - first.Int64 + 1), more, err
}

// erased is the decision of an entry without contents.
const erased = "erased"

// isErased reports whether only the entry's place in the chain is left. What it was cannot
// be verified any more.
func (e *Entry) isErased() bool { return *e == e.erase() }

// erase returns the entry without its contents.
func (e *Entry) erase() Entry {
	return Entry{Node: e.Node, Seq: e.Seq, At: e.At, Decision: erased, Prev: e.Prev, Hash: e.Hash}
}

// eraseSome erases the contents of old entries, and reports whether there may be more.
func eraseSome(ctx context.Context, tx *db.Tx, node string, limits AgeLimits) (count int, more bool, err error) {
	var where conditions
	query := `SELECT entry FROM audit_log WHERE node = ` + where.value(node) + ` AND decision <> '` + erased + `' AND ` + limits.condition(&where)
	texts, err := db.All(ctx, tx, db.Column[string],
		fmt.Sprintf(`%s ORDER BY seq LIMIT %d`, query, erasedAtOnce), where.args...)
	if err != nil {
		return 0, false, err
	}
	for _, text := range texts {
		e, err := decode(text)
		if err != nil || e.Hash == "" || e.Node != node {
			return count, false, nil //nolint:nilerr // it was changed: Verify reports it
		}
		rest := e.erase()
		r := rowOf(&rest, sign(rest.unsigned(), rest.Hash))
		if _, err := tx.Exec(ctx, `UPDATE audit_log SET org = '', who = '', name = '', subject = '', decision = $1, entry = $2, session = '', detail = '' WHERE node = $3 AND seq = $4`, r.decision, r.entry, r.node, r.seq); err != nil {
			return count, false, err
		}
		count++
	}
	return count, len(texts) == erasedAtOnce, nil
}
