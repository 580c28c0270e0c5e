package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/db"
	"github.com/luanette/luanette/internal/fault"
)

// Store is what is kept: it can be read by processes that add nothing.
type Store struct{ db *db.DB }

// OpenStore brings the tables up to date.
func OpenStore(ctx context.Context, database *db.DB) (*Store, error) {
	if err := database.Migrate(ctx, "audit", migrations); err != nil {
		return nil, err
	}
	return &Store{database}, nil
}

const columns = `node, seq, at, who, name, client, trace, request, action, subject, args, decision, rule, size, error, took, prev, hash`

var width = strings.Count(columns, ",") + 1

func scan(row db.Scanner) (e Entry, err error) {
	var at int64
	err = row.Scan(&e.Node, &e.Seq, &at, &e.Who, &e.Name, &e.Client, &e.Trace, &e.Request, &e.Action, &e.Subject, &e.Args,
		&e.Decision, &e.Rule, &e.Size, &e.Error, &e.Took, &e.Prev, &e.Hash)
	e.At = time.UnixMicro(at).UTC()
	return e, err
}

// Chain is how far a node's entries go.
type Chain struct {
	Node    string `json:"node"`
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
	Cut     int64  `json:"cut"` // up to here entries were let go
	CutHash string `json:"cut_hash"`
}

func scanChain(row db.Scanner) (c Chain, err error) {
	return c, row.Scan(&c.Node, &c.Seq, &c.Hash, &c.Cut, &c.CutHash)
}

const chainColumns = `node, seq, hash, cut, cut_hash`

// add puts entries at the end of a node's chain, which other processes of the node
// may add to as well.
func (s *Store) add(ctx context.Context, node string, entries []Entry) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		last, err := scanChain(tx.QueryRow(ctx, `SELECT `+chainColumns+` FROM audit_chains WHERE node = $1`, node))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		for rest := entries; len(rest) > 0; {
			n := 1
			if len(rest) >= together {
				n = together
			}
			if err := last.extend(ctx, tx, node, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		_, err = tx.Exec(ctx, `INSERT INTO audit_chains (`+chainColumns+`) VALUES ($1, $2, $3, 0, '')
			ON CONFLICT (node) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`, node, last.Seq, last.Hash)
		return err
	})
}

// together is how many entries one statement inserts where there are many, which
// costs about half of as many statements.
const together = 16

var insertOne, insertTogether = insertion(1), insertion(together)

// insertion is the statement that adds so many entries.
func insertion(entries int) string {
	text := strings.Builder{}
	text.WriteString(`INSERT INTO audit_entries (` + columns + `) VALUES `)
	for i := range entries * width {
		switch {
		case i%width > 0:
			text.WriteString(", ")
		case i > 0:
			text.WriteString("), (")
		default:
			text.WriteString("(")
		}
		fmt.Fprintf(&text, "$%d", i+1)
	}
	return text.String() + ")"
}

// extend adds entries, one or together, after the last.
func (c *Chain) extend(ctx context.Context, tx *db.Tx, node string, entries []Entry) error {
	values := make(rows, 0, len(entries)*width)
	for _, e := range entries {
		e.Node, e.Seq, e.Prev = node, c.Seq+1, c.Hash
		e.Hash = e.sum()
		values.add(e.Node)
		values = append(values, e.Seq, e.At.UnixMicro())
		values.add(e.Who, e.Name, e.Client, e.Trace, e.Request, e.Action, e.Subject, e.Args, e.Decision, e.Rule)
		values = append(values, e.Size)
		values.add(e.Error)
		values = append(values, e.Took)
		values.add(e.Prev, e.Hash)
		c.Seq, c.Hash = e.Seq, e.Hash
	}
	statement := insertOne
	if len(entries) == together {
		statement = insertTogether
	}
	_, err := tx.Exec(ctx, statement, values...)
	return err
}

// rows are values of entries, one after the other.
type rows []any

// add takes texts. One that is the same as in the row before, as most are, is not
// wrapped anew.
func (r *rows) add(texts ...string) {
	for _, text := range texts {
		if at := len(*r) - width; at >= 0 && (*r)[at] == text {
			*r = append(*r, (*r)[at])
			continue
		}
		*r = append(*r, text)
	}
}

// Filter picks entries. Zero fields pick all.
type Filter struct {
	Since, Until time.Time
	Who          string // id or name
	Tool         string // the subject; * stands for any letters
	Decision     string
	Node         string
	After        int64 // with Node: entries after this one, in the order of the chain
	Limit        int   // 0 is 100
}

// Find lists entries, the newest first; with Node and without a Limit in the past
// of time, in the order of the node's chain.
func (s *Store) Find(ctx context.Context, f Filter) (list []Entry, err error) {
	var where []string
	var args []any
	with := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	if !f.Since.IsZero() {
		with("at >= ?", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		with("at < ?", f.Until.UnixMicro())
	}
	if f.Who != "" {
		with("(who = ? OR name = ?)", f.Who, f.Who)
	}
	if f.Tool != "" {
		with("subject LIKE ?", strings.ReplaceAll(f.Tool, "*", "%"))
	}
	if f.Decision != "" {
		with("decision = ?", f.Decision)
	}
	order := "at DESC, node, seq DESC"
	if f.Node != "" {
		with("node = ? AND seq > ?", f.Node, f.After)
		order = "seq"
	}
	query := `SELECT ` + columns + ` FROM audit_entries`
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, " AND ")
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	query += fmt.Sprintf(" ORDER BY %s LIMIT %d", order, f.Limit)
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		list, err = db.All(ctx, tx, scan, query, args...)
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the audit log")
	}
	return list, nil
}

// Chains are those of all nodes.
func (s *Store) Chains(ctx context.Context) (list []Chain, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		list, err = db.All(ctx, tx, scanChain, `SELECT `+chainColumns+` FROM audit_chains ORDER BY node`)
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the audit log")
	}
	return list, nil
}

// Cut lets entries go that are older than before. Where each chain was cut is kept,
// with the hash of the last entry that went.
func (s *Store) Cut(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		chains, err := db.All(ctx, tx, scanChain, `SELECT `+chainColumns+` FROM audit_chains`)
		if err != nil {
			return err
		}
		for _, c := range chains {
			var seq int64
			var hash string
			err := tx.QueryRow(ctx, `SELECT seq, hash FROM audit_entries WHERE node = $1 AND at < $2 ORDER BY seq DESC LIMIT 1`, c.Node, before.UnixMicro()).Scan(&seq, &hash)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `DELETE FROM audit_entries WHERE node = $1 AND seq <= $2`, c.Node, seq); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE audit_chains SET cut = $1, cut_hash = $2 WHERE node = $3`, seq, hash, c.Node); err != nil {
				return err
			}
		}
		return nil
	})
}
