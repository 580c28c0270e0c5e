package audit

import (
	"context"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// atATime is how many entries are adopted in one transaction.
const atATime = 4 * mostEntries

// adopt moves into pages what programs before this one have kept, a row for each
// entry, with the hashes that it has. It may be killed at any time, and several nodes
// may do it at once: each transaction moves a part.
func (s *Store) adopt(ctx context.Context, log *slog.Logger) error {
	const often = 100 * atATime
	for moved, told := 0, 0; ; {
		there, err := s.hasRows(ctx)
		if err != nil || !there {
			return err
		}
		some, err := s.adoptSome(ctx)
		if err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "move audit entries into pages").
				WithHint("if there is a page already, somebody has put entries into the table audit_entries by hand: take them out")
		}
		if moved += some; moved-told >= often {
			told = moved
			log.InfoContext(ctx, "audit entries are moved into pages", "so_far", moved)
		}
	}
}

func (s *Store) hasRows(ctx context.Context) (there bool, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM audit_entries)`).Scan(&there)
	})
	return there, reading(err)
}

// adoptSome moves entries of one node that follow each other, and tells how many.
func (s *Store) adoptSome(ctx context.Context) (moved int, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		entries, err := db.All(ctx, tx, scanRow, `SELECT node, seq, at, who, name, client, trace, request, action, subject, args,
			decision, rule, size, error, took, prev, hash FROM audit_entries
			WHERE node = (SELECT min(node) FROM audit_entries) ORDER BY seq LIMIT $1`, atATime)
		if moved = following(entries); err != nil || moved == 0 { // another has moved them
			return err
		}
		var b binder
		for rest := entries[:moved]; len(rest) > 0; {
			p, bound := b.bind(rest[0].Node, len(rest), func(i int, out []byte) ([]byte, int64, int64) {
				e := &rest[i]
				return sign(e.appendUnsigned(out), e.Hash), e.Seq, e.At.UnixMicro()
			})
			if err := p.insert(ctx, tx, b.text); err != nil {
				return err
			}
			rest = rest[bound:]
		}
		last := entries[moved-1]
		_, err = tx.Exec(ctx, `DELETE FROM audit_entries WHERE node = $1 AND seq <= $2`, last.Node, last.Seq)
		return err
	})
	return moved, err
}

func scanRow(row db.Scanner) (e Entry, err error) {
	var at int64
	err = row.Scan(&e.Node, &e.Seq, &at, &e.Who, &e.Name, &e.Client, &e.Trace, &e.Request, &e.Action, &e.Subject, &e.Args,
		&e.Decision, &e.Rule, &e.Size, &e.Error, &e.Took, &e.Prev, &e.Hash)
	e.At = time.UnixMicro(at).UTC()
	return e, err
}

// following is how many entries there are before the first gap.
func following(entries []Entry) int {
	for i := range entries {
		if i > 0 && entries[i].Seq != entries[i-1].Seq+1 {
			return i
		}
	}
	return len(entries)
}
