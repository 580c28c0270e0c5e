package script

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Several nodes may share sessions. The node that runs a turn owns the session's row
// until the turn ends, or until the node is known to have stopped. So turns never
// overlap, and a node whose cached state is older than the row loads the saved one.

// pollInterval is how often a node polls whether a session is free.
const pollInterval = 200 * time.Millisecond

// hold waits until no other node runs a turn of the session.
func (s *Sessions) hold(ctx context.Context, id string) (release func(), err error) {
	if s.options.Node == "" {
		return func() {}, nil
	}
	for {
		held, err := s.tryHold(ctx, id)
		if err != nil {
			return nil, err
		}
		if held {
			return func() { s.release(context.WithoutCancel(ctx), id) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

// tryHold makes this node the owner of a session, unless another node owns it. A session
// that does not exist has no owner.
func (s *Sessions) tryHold(ctx context.Context, id string) (held bool, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE sessions SET holder = $2 WHERE id = $1 AND holder = ''`, id, s.options.Node); err != nil {
			return err
		}
		var others int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM sessions WHERE id = $1 AND holder <> $2`, id, s.options.Node).Scan(&others)
		held = others == 0
		return err
	})
	return held, err
}

func (s *Sessions) release(ctx context.Context, id string) {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET holder = '' WHERE id = $1 AND holder = $2`, id, s.options.Node)
		return err
	})
	if err != nil { // the session stays owned until this node stops or uses it again
		s.runner.options.Log.ErrorContext(ctx, "release session", "error", err)
	}
}

// Owners returns the nodes that own sessions.
func (s *Sessions) Owners(ctx context.Context) (nodes []string, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		nodes, err = db.All(ctx, tx, func(row db.Scanner) (node string, err error) { return node, row.Scan(&node) },
			`SELECT DISTINCT holder FROM sessions WHERE holder <> ''`)
		return err
	})
	return nodes, err
}

// TakeOver releases the sessions of nodes that have stopped. Their unfinished turns are
// lost.
func (s *Sessions) TakeOver(ctx context.Context, dead []string) error {
	for _, node := range dead {
		err := s.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE sessions SET holder = '' WHERE holder = $1`, node)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ReleaseSessions releases all sessions in a restored database, whichever node owned
// them.
func ReleaseSessions(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET holder = '' WHERE holder <> ''`)
		return err
	})
}

// Recheck does nothing: a turn whose session was reassigned fails when it saves.
func (s *Sessions) Recheck(context.Context) error { return nil }
