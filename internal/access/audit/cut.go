package audit

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// DeleteBefore lets entries go that are older than before. Where each chain was cut is kept,
// with the hash of the last entry that went.
func (s *Store) DeleteBefore(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		chains, err := allChains(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range chains {
			if err := c.cut(ctx, tx, before.UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
}

// cut finds the last page with an old entry and lets it go with all before it. What
// it held behind that entry becomes a page again, so nothing old is kept for the sake
// of what is not.
func (c *Chain) cut(ctx context.Context, tx *db.Tx, before int64) error {
	p, err := scanPage(tx.QueryRow(ctx, `SELECT `+pageColumns+` FROM audit_pages WHERE node = $1 AND first =
		(SELECT max(first) FROM audit_pages WHERE node = $1 AND since < $2)`, c.Node, before))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	last, rest := p.split(before)
	if last.seq == 0 { // the page is not what it says: Verify tells
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM audit_pages WHERE node = $1 AND first <= $2`, c.Node, last.seq); err != nil {
		return err
	}
	if rest.entries != "" {
		if err := rest.insert(ctx, tx, []byte(rest.entries)); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `UPDATE audit_chains SET cut = $1, cut_hash = $2 WHERE node = $3`, last.seq, last.hash, c.Node)
	return err
}

// split finds the last entry that is older than before, and what comes behind it.
func (p *page) split(before int64) (last link, rest page) {
	rest, end := page{node: p.node}, 0
	for line := range p.lines() {
		end += len(line) + 1
		l, ok := linkOf(line)
		switch {
		case ok && l.at < before:
			last, rest = l, page{node: p.node, entries: p.entries[min(end, len(p.entries)):]}
		case ok:
			rest.note(l.seq, l.at)
		}
	}
	return last, rest
}
