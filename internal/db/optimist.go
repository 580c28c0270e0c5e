package db

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/backoff"
)

// optimist runs Writes side by side, each in a serializable transaction of its
// own. Postgres lets them pass as long as one order explains what all of them
// saw; one that does not fit is undone and run again. Commits at the same time
// share their wait for the disk by themselves.
type optimist struct {
	p     *postgres
	db    *sql.DB
	mu    sync.Mutex
	ended bool
	under sync.WaitGroup // Writes that are running
}

// again is how soon a Write that got in another's way is run again, and how
// often: past it, something is wrong with the room.
var again = backoff.Policy{First: time.Millisecond, Max: 100 * time.Millisecond, Jitter: 1}

const maxTries = 100

func newOptimist(p *postgres) *optimist { return &optimist{p: p, db: p.open(pgWriters)} }

func (w *optimist) write(ctx context.Context, f func(*Tx) error) error {
	if !w.enter() {
		return errClosed()
	}
	defer w.under.Done()
	for try := 1; ; try++ {
		var conflict error
		err := w.p.patiently(ctx, func() error {
			err := w.once(ctx, f)
			if isConflict(err) {
				conflict = err
				return nil
			}
			return err
		})
		if err != nil || conflict == nil {
			return err
		}
		if try == maxTries {
			return conflict
		}
		if err := sleep(ctx, again.Delay(try)); err != nil {
			return err
		}
	}
}

// once runs f in one transaction. The error says what is to become of it; what
// the database said counts more than what f made of it.
func (w *optimist) once(ctx context.Context, f func(*Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return doing("begin write", err)
	}
	defer func() { _ = conn.Close() }()                         // gives it back
	inner, err := conn.BeginTx(context.WithoutCancel(ctx), nil) // f sees for itself that ctx is over
	if err != nil {
		return doing("begin write", err)
	}
	defer func() { _ = inner.Rollback() }() // when f fails or panics
	tx := &Tx{tx: inner, dialect: w.p}
	if err := f(tx); err != nil {
		if ctx.Err() == nil && (isConflict(tx.hurt) || isLost(tx.hurt)) {
			return tx.hurt
		}
		return err
	}
	err = inner.Commit()
	if d := (inDoubt{}); errors.As(err, &d) {
		return w.p.verdict(ctx, d)
	}
	if err != nil && tx.hurt != nil {
		return doing("commit", errors.Join(tx.hurt, err))
	}
	if err != nil {
		return doing("commit", err)
	}
	return nil
}

func (w *optimist) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.under.Add(1)
	return true
}

func (w *optimist) close() error {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.under.Wait()
	return w.db.Close()
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
