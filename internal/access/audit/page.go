package audit

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// page is entries of a node that follow each other, kept as one row: a row for each
// would cost a relayed call more than all that is looked at in it.
type page struct {
	node         string
	first, last  int64 // their numbers
	since, until int64 // the earliest and the latest time, in microseconds since 1970
	entries      string
}

const pageColumns = `node, first, last, since, until, entries`

// Bounds of a page, of which readers hold one at a time. The last entry may be past
// the bound of bytes.
const (
	mostEntries = 256
	mostBytes   = 256 << 10
)

func scanPage(row db.Scanner) (p page, err error) {
	return p, row.Scan(&p.node, &p.first, &p.last, &p.since, &p.until, &p.entries)
}

// insert keeps a page of the given entries, which stay in their writer's memory:
// hence the cast, which makes text of bytes. One that another node has just kept in its place is a conflict
// of transactions to Postgres only if it is told to do nothing then; that it was
// there before is an error.
func (p *page) insert(ctx context.Context, tx *db.Tx, entries []byte) error {
	result, err := tx.Exec(ctx, `INSERT INTO audit_pages (`+pageColumns+`) VALUES ($1, $2, $3, $4, $5, CAST($6 AS TEXT)) ON CONFLICT DO NOTHING`,
		p.node, p.first, p.last, p.since, p.until, entries)
	if err != nil {
		return err
	}
	if added, err := result.RowsAffected(); err != nil || added == 0 {
		return errors.Join(fault.New(fault.Conflict, "there is a page of entry %d of node %s already", p.first, p.node).
			WithHint("somebody has put it there by hand: see what luanette audit verify tells"), err)
	}
	return nil
}

// lines are the entries.
func (p *page) lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(p.entries) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

// note counts an entry in.
func (p *page) note(seq, at int64) {
	if p.first == 0 {
		p.first, p.since, p.until = seq, at, at
	}
	p.last, p.since, p.until = seq, min(p.since, at), max(p.until, at)
}

// binder makes pages. Its memory is used again and again.
type binder struct{ text []byte }

// bind makes a page of as many of n entries as it holds, which are then in text, and
// tells how many those are. They are written by next, which tells the number and time
// of each.
func (b *binder) bind(node string, n int, next func(i int, out []byte) (line []byte, seq, at int64)) (p page, bound int) {
	p.node, b.text = node, b.text[:0]
	for bound < min(n, mostEntries) && len(b.text) < mostBytes {
		var seq, at int64
		b.text, seq, at = next(bound, b.text)
		p.note(seq, at)
		bound++
	}
	return p, bound
}
