package audit

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Store is what is kept: it can be read by processes that add nothing.
type Store struct{ db *db.DB }

// OpenStore brings the tables up to date.
func OpenStore(ctx context.Context, database *db.DB) (*Store, error) {
	return openStore(ctx, database, slog.New(slog.DiscardHandler))
}

func openStore(ctx context.Context, database *db.DB, log *slog.Logger) (*Store, error) {
	if err := database.Migrate(ctx, "audit", migrations); err != nil {
		return nil, err
	}
	s := &Store{database}
	return s, s.adopt(ctx, log)
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
func (s *Store) add(ctx context.Context, node string, deeds []Draft, b *binder) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		chain, err := scanChain(tx.QueryRow(ctx, `SELECT `+chainColumns+` FROM audit_chains WHERE node = $1`, node))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		end := growing{node: node, seq: chain.Seq, hash: []byte(chain.Hash)}
		for rest := deeds; len(rest) > 0; {
			p, bound := b.bind(node, len(rest), func(i int, out []byte) ([]byte, int64, int64) { return end.add(&rest[i], out) })
			if err := p.insert(ctx, tx, b.text); err != nil {
				return err
			}
			rest = rest[bound:]
		}
		_, err = tx.Exec(ctx, `INSERT INTO audit_chains (`+chainColumns+`) VALUES ($1, $2, $3, 0, '')
			ON CONFLICT (node) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`, node, end.seq, string(end.hash))
		return err
	})
}

// Chains are those of all nodes.
func (s *Store) Chains(ctx context.Context) (list []Chain, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		list, err = allChains(ctx, tx)
		return err
	})
	return list, reading(err)
}

func allChains(ctx context.Context, tx *db.Tx) ([]Chain, error) {
	return db.All(ctx, tx, scanChain, `SELECT `+chainColumns+` FROM audit_chains ORDER BY node`)
}

func reading(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Internal, err, "read the audit log")
}
