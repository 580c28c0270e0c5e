package script

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Several nodes may share sessions. Whoever runs a turn holds the session's row
// meanwhile: until the turn is over, however long it takes, or the node is gone. So
// two never run at once, and a node whose state in memory is older than the row
// loads what the other saved.

// peek is how often a node looks for itself whether a session is free.
const peek = 200 * time.Millisecond

// hold waits until no other node runs a turn of the session.
func (s *Sessions) hold(ctx context.Context, id string) (release func(), err error) {
	if s.options.Node == "" {
		return func() {}, nil
	}
	for {
		held, err := s.grab(ctx, id)
		if err != nil {
			return nil, err
		}
		if held {
			return func() { s.free(context.WithoutCancel(ctx), id) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(peek):
		}
	}
}

// grab makes a session this node's unless it is another's. One that does not exist
// is nobody's.
func (s *Sessions) grab(ctx context.Context, id string) (held bool, err error) {
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

func (s *Sessions) free(ctx context.Context, id string) {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET holder = '' WHERE id = $1 AND holder = $2`, id, s.options.Node)
		return err
	})
	if err != nil { // the session waits until this node is gone, or uses it again
		s.runner.options.Log.ErrorContext(ctx, "a session was not let go of", "error", err)
	}
}

// Owners are the nodes that run turns.
func (s *Sessions) Owners(ctx context.Context) (nodes []string, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		nodes, err = db.All(ctx, tx, func(row db.Scanner) (node string, err error) { return node, row.Scan(&node) },
			`SELECT DISTINCT holder FROM sessions WHERE holder <> ''`)
		return err
	})
	return nodes, err
}

// Adopt lets go of the sessions of nodes that are gone. Their turns did not happen.
func (s *Sessions) Adopt(ctx context.Context, gone []string) error {
	for _, node := range gone {
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

// ReleaseSessions lets go of all sessions of a file, whichever node of another database held
// them.
func ReleaseSessions(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET holder = '' WHERE holder <> ''`)
		return err
	})
}

// Recheck has nothing to do: a turn whose session was taken finds out when it comes
// to save.
func (s *Sessions) Recheck(context.Context) error { return nil }
