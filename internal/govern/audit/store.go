package audit

import (
	"context"
	"database/sql"
	"embed"
	"errors"

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
	return &Store{database}, database.Migrate(ctx, "audit", Migrations)
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

// add appends entries to a node's chain, and gives them their places in it. Several processes
// may append to the same chain.
func (s *Store) add(ctx context.Context, node string, entries []Entry) error {
	rows := make([]newRow, len(entries))
	return s.db.Write(ctx, func(tx *db.Tx) error {
		chain, err := scanChain(tx.QueryRow(ctx, `SELECT `+chainColumns+` FROM audit_chains WHERE node = $1`, node))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		chain.Node = node
		for i := range entries {
			rows[i] = newRow{row: chain.append(&entries[i])}
		}
		if err := s.addActivity(ctx, tx, entries, rows); err != nil {
			return err
		}
		if err := insertRows(ctx, tx, rows); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO audit_chains (`+chainColumns+`) VALUES ($1, $2, $3, 0, '')
			ON CONFLICT (node) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`, node, chain.Seq, chain.Hash)
		return err
	})
}

// append makes an entry the last of the chain.
func (c *Chain) append(e *Entry) row {
	e.settle()
	e.Node, e.Seq, e.Prev = c.Node, c.Seq+1, c.Hash
	unsigned := e.unsigned()
	e.Hash = Digest(unsigned)
	c.Seq, c.Hash = e.Seq, e.Hash
	return rowOf(e, sign(unsigned, e.Hash))
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
