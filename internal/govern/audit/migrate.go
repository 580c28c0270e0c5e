package audit

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Bounds of one transaction of moveOld.
const (
	entriesAtOnce = 1024
	pagesAtOnce   = 4 // of up to 256 entries each
)

// moveOld moves what older releases stored into audit_log, with the hashes it has:
// rows of audit_entries, and pages of JSON lines in audit_pages. It may be killed at
// any time, and several nodes may do it at once.
func (s *Store) moveOld(ctx context.Context, log *slog.Logger) error {
	const reportEvery = 100 * entriesAtOnce
	for moved, reported := 0, 0; ; {
		some, err := s.moveSome(ctx)
		if err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "move audit entries to the table audit_log").
				WithHint("if an entry exists already, audit_entries or audit_pages was edited by hand: delete it there")
		}
		if some == 0 {
			return nil
		}
		if moved += some; moved-reported >= reportEvery {
			reported = moved
			log.InfoContext(ctx, "audit entries are being moved to the table audit_log", "so_far", moved)
		}
	}
}

// moveSome moves one batch and returns how many entries it had.
func (s *Store) moveSome(ctx context.Context) (moved int, err error) {
	var entries, pages bool
	err = s.db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM audit_entries), EXISTS (SELECT 1 FROM audit_pages)`).Scan(&entries, &pages)
	if err != nil || !entries && !pages {
		return 0, err
	}
	move := movePages
	if entries {
		move = moveEntries
	}
	err = s.db.Write(ctx, func(tx *db.Tx) (err error) {
		moved, err = move(ctx, tx)
		return err
	})
	if err == nil && moved == 0 { // another node has moved them
		moved, err = s.moveSome(ctx)
	}
	return moved, err
}

func moveEntries(ctx context.Context, tx *db.Tx) (moved int, err error) {
	entries, err := db.All(ctx, tx, scanOldEntry, `SELECT node, seq, at, who, name, client, trace, request, action, subject, args,
		decision, rule, size, error, took, prev, hash FROM audit_entries
		WHERE node = (SELECT min(node) FROM audit_entries) ORDER BY seq LIMIT $1`, entriesAtOnce)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	rows := make([]row, len(entries))
	for i := range entries {
		e := &entries[i]
		rows[i] = rowOf(e, sign(e.appendUnsigned(nil), e.Hash))
	}
	if err := insertRows(ctx, tx, rows); err != nil {
		return 0, err
	}
	last := entries[len(entries)-1]
	_, err = tx.Exec(ctx, `DELETE FROM audit_entries WHERE node = $1 AND seq <= $2`, last.Node, last.Seq)
	return len(entries), err
}

func scanOldEntry(row db.Scanner) (e Entry, err error) {
	var at int64
	err = row.Scan(&e.Node, &e.Seq, &at, &e.Who, &e.Name, &e.Client, &e.Trace, &e.Request, &e.Action, &e.Subject, &e.Args,
		&e.Decision, &e.Rule, &e.Size, &e.Error, &e.Took, &e.Prev, &e.Hash)
	e.At = time.UnixMicro(at).UTC()
	return e, err
}

// page is one row of audit_pages.
type page struct {
	node    string
	first   int64
	entries string // JSON, one line each
}

func movePages(ctx context.Context, tx *db.Tx) (moved int, err error) {
	scan := func(row db.Scanner) (p page, err error) { return p, row.Scan(&p.node, &p.first, &p.entries) }
	pages, err := db.All(ctx, tx, scan, `SELECT node, first, entries FROM audit_pages ORDER BY node, first LIMIT $1`, pagesAtOnce)
	if err != nil {
		return 0, err
	}
	for _, p := range pages {
		rows := p.rows()
		if err := insertRows(ctx, tx, rows); err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM audit_pages WHERE node = $1 AND first = $2`, p.node, p.first); err != nil {
			return 0, err
		}
		moved += max(1, len(rows))
	}
	return moved, nil
}

// rows are the entries of a page. A line that was changed and is no entry any more is
// moved as it is, with the number it should have, so that Verify reports it.
func (p *page) rows() (rows []row) {
	next := p.first
	for line := range strings.Lines(p.entries) {
		line = strings.TrimSuffix(line, "\n")
		r := row{node: p.node, seq: next, entry: line}
		if e, err := decode(line); err == nil && e.Hash != "" && e.Seq >= next {
			r = rowOf(&e, line)
			r.node = p.node
		}
		rows, next = append(rows, r), r.seq+1
	}
	return rows
}
