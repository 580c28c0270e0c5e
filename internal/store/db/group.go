package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/luanette/luanette/internal/base/queue"
)

// A commit waits for the disk, which costs far more than a statement, so writers share
// commits. The first one opens a transaction. If others are queued when it has done its
// part, it queues again at the end; those before it do their parts in the same
// transaction, and then it commits for all. Each part has a savepoint, so a failing one
// does not affect the others. A single writer commits at once.
const (
	line     = "write" // the key of the only lane
	maxGroup = 256     // parts per commit: bounds how long the first part waits
)

type groupWriter struct {
	db      *sql.DB
	dialect dialect
	turns   *queue.Lanes

	// Used only inside the lane.
	open   *group // nil when no transaction is open
	closed bool
}

func newGroupWriter(db *sql.DB, d dialect) *groupWriter {
	return &groupWriter{db: db, dialect: d, turns: queue.NewLanes(queue.LaneOptions{Depth: math.MaxInt})}
}

// write does one part. The writer that opened the group commits it, even when its own
// part fails or panics: hence the defer.
func (w *groupWriter) write(ctx context.Context, f func(*Tx) error) (err error) {
	var g *group
	var first bool
	defer func() {
		if g == nil {
			return
		}
		if first {
			w.settle(ctx, g)
		}
		if err == nil {
			<-g.done
			err = g.err
		}
	}()
	return w.turns.Do(ctx, line, func(ctx context.Context) (err error) {
		if g, first, err = w.join(ctx); err != nil {
			return err
		}
		defer func() {
			if w.open == g && (w.turns.Len(line) == 1 || g.parts >= maxGroup) {
				w.commit(g)
			}
		}()
		return w.part(ctx, g, f)
	})
}

// join returns the open group, or a new one.
func (w *groupWriter) join(ctx context.Context) (g *group, first bool, err error) {
	switch {
	case w.closed:
		return nil, false, errClosed()
	case w.open != nil:
		return w.open, false, nil
	}
	tx, err := w.db.BeginTx(context.WithoutCancel(ctx), nil) // it outlives the first writer's ctx
	if err != nil {
		return nil, false, doing("begin write", err)
	}
	w.open = &group{tx: tx, done: make(chan struct{})}
	return w.open, true, nil
}

// part runs f in a savepoint of g.
func (w *groupWriter) part(ctx context.Context, g *group, f func(*Tx) error) (err error) {
	g.parts++
	if err := g.run(ctx, "SAVEPOINT part"); err != nil {
		return w.abandon(g, err)
	}
	released := false
	defer func() {
		if released {
			return
		}
		if undo := g.run(ctx, "ROLLBACK TO part; RELEASE part"); undo != nil {
			err = errors.Join(err, w.abandon(g, undo))
		}
	}()
	if err := f(&Tx{tx: g.tx, dialect: w.dialect, shared: true}); err != nil {
		return err
	}
	if err := g.run(ctx, "RELEASE part"); err != nil {
		return doing("end write", err)
	}
	released = true
	return nil
}

// settle commits g unless that is done. It ignores the end of ctx, because other
// writers wait for g.
func (w *groupWriter) settle(ctx context.Context, g *group) {
	select {
	case <-g.done:
		return
	default:
	}
	_ = w.turns.Do(context.WithoutCancel(ctx), line, func(context.Context) error {
		if w.open == g {
			w.commit(g)
		}
		return nil
	})
}

func (w *groupWriter) commit(g *group) {
	if err := g.tx.Commit(); err != nil {
		g.err = doing("commit", err)
	}
	w.end(g)
}

// abandon rolls all of g back: the database has lost the transaction, or cannot roll
// back one part of it.
func (w *groupWriter) abandon(g *group, cause error) error {
	_ = g.tx.Rollback() // cause is the error to report
	g.err = fmt.Errorf("transaction was rolled back: %w", cause)
	w.end(g)
	return g.err
}

func (w *groupWriter) end(g *group) {
	w.open = nil
	close(g.done)
}

// close commits the open group, if there is one, and closes the connection.
func (w *groupWriter) close() error {
	return w.turns.Do(context.Background(), line, func(context.Context) error {
		if w.open != nil {
			w.commit(w.open)
		}
		w.closed = true
		return w.db.Close()
	})
}

// group is a transaction that several writers share.
type group struct {
	tx    *sql.Tx
	parts int
	done  chan struct{} // closed when err is final
	err   error
}

func (g *group) run(ctx context.Context, statement string) error {
	_, err := g.tx.ExecContext(context.WithoutCancel(ctx), statement)
	return err
}
