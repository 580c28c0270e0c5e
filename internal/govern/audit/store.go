package audit

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Store reads stored entries. Processes that record nothing use it without a Log.
type Store struct{ db *db.DB }

// OpenStore brings the tables up to date.
func OpenStore(ctx context.Context, database *db.DB) (*Store, error) {
	return openStore(ctx, database, slog.New(slog.DiscardHandler))
}

func openStore(ctx context.Context, database *db.DB, log *slog.Logger) (*Store, error) {
	if err := database.Migrate(ctx, "audit", Migrations); err != nil {
		return nil, err
	}
	s := &Store{database}
	return s, s.moveOld(ctx, log)
}

// Chain is the beginning and the end of a node's entries.
type Chain struct {
	Node    string `json:"node"`
	Seq     int64  `json:"seq"` // of the last entry
	Hash    string `json:"hash"`
	Cut     int64  `json:"cut"` // entries up to this one were deleted because of their age
	CutHash string `json:"cut_hash"`
}

func scanChain(row db.Scanner) (c Chain, err error) {
	return c, row.Scan(&c.Node, &c.Seq, &c.Hash, &c.Cut, &c.CutHash)
}

const chainColumns = `node, seq, hash, cut, cut_hash`

// add appends entries to a node's chain and returns them. Several processes may append to
// the same chain.
func (s *Store) add(ctx context.Context, node string, drafts []Draft) (entries []Entry, err error) {
	entries, rows := make([]Entry, len(drafts)), make([]row, len(drafts))
	return entries, s.db.Write(ctx, func(tx *db.Tx) error {
		chain, err := scanChain(tx.QueryRow(ctx, `SELECT `+chainColumns+` FROM audit_chains WHERE node = $1`, node))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		chain.Node = node
		for i := range drafts {
			entries[i], rows[i] = chain.append(&drafts[i])
		}
		if err := insertRows(ctx, tx, rows); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO audit_chains (`+chainColumns+`) VALUES ($1, $2, $3, 0, '')
			ON CONFLICT (node) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`, node, chain.Seq, chain.Hash)
		return err
	})
}

// append makes a draft the last entry of the chain.
func (c *Chain) append(d *Draft) (Entry, row) {
	e := d.entry()
	e.Node, e.Seq, e.Prev = c.Node, c.Seq+1, c.Hash
	unsigned := e.appendUnsigned(make([]byte, 0, 768))
	e.Hash = Digest(unsigned).String()
	c.Seq, c.Hash = e.Seq, e.Hash
	return e, rowOf(&e, sign(unsigned, e.Hash))
}

// Chains returns the chains of all nodes.
func (s *Store) Chains(ctx context.Context) (list []Chain, err error) {
	list, err = db.Find(ctx, s.db, scanChain, `SELECT `+chainColumns+` FROM audit_chains ORDER BY node`)
	return list, reading(err)
}

func reading(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Internal, err, "read the audit log")
}

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
