package db

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
)

// serializableWriter runs Writes in serializable transactions. Postgres lets them pass as
// long as one order explains what all of them saw; one that does not fit is
// undone and run again. Small tables and the newest end of an index make it see
// conflicts where there are none, so the Writes of one node do not run side by
// side: those that wait when a transaction begins share it (party.go), and
// conflicts are only with other nodes. Who comes later waits for the next one,
// which sees what other nodes have acknowledged since.
type serializableWriter struct {
	p    *postgres
	db   *sql.DB
	ctx  context.Context //nolint:containedctx // of what runs in the background, until close
	stop context.CancelFunc

	mu      sync.Mutex
	waiting []*txPart
	serving bool // while somebody waits
	ended   bool
	under   sync.WaitGroup // Writes, and what serves them
}

const (
	maxParts = 60  // parts of one transaction: bounds how long the first of them waits
	maxTries = 100 // of a part that gets in others' way: past it, something is wrong with the room
)

// again is how soon parts that got in another's way are run again.
var again = backoff.Policy{First: time.Millisecond, Max: 100 * time.Millisecond, Jitter: 1}

func newSerializableWriter(p *postgres) *serializableWriter {
	ctx, stop := context.WithCancel(context.Background())
	return &serializableWriter{p: p, db: p.open(1, once), ctx: ctx, stop: stop}
}

// write waits in line, does its part when its turn comes, as often as it comes,
// and returns what became of it.
func (w *serializableWriter) write(ctx context.Context, f func(*Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := newTxPart(ctx, f, time.Now().Add(w.p.outageTimeout))
	if !w.join(p) {
		return errClosed()
	}
	defer w.under.Done()
	over := ctx.Done()
	for {
		select {
		case tx := <-p.turn:
			p.do(tx)
		case err := <-p.done:
			return err
		case <-p.requeued:
			over = ctx.Done()
		case <-over:
			if w.leave(p) {
				return context.Cause(ctx)
			}
			over = nil // it shares a transaction just now
		}
	}
}

// join puts a part at the end of the line, unless the database is closed.
func (w *serializableWriter) join(p *txPart) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.under.Add(1)
	w.waiting = append(w.waiting, p)
	if !w.serving {
		w.serving = true
		w.under.Go(w.serve)
	}
	return true
}

// leave takes a part out of the line, if it still waits there.
func (w *serializableWriter) leave(p *txPart) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.waiting, p)
	if i < 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return true
}

// serve runs transactions as long as somebody waits.
func (w *serializableWriter) serve() {
	for failures := 0; w.hasWork(); {
		err := w.serveOne()
		switch c := (conflict{}); {
		case isLost(err):
			failures++
			_ = sleep(w.ctx, reconnectDelay.Delay(failures)) // when closed, nobody waits
		case errors.As(err, &c) && c.tries > 1:
			_ = sleep(w.ctx, again.Delay(c.tries))
		default:
			failures = 0
		}
	}
}

// hasWork tells whether somebody waits; if not, the next to come starts anew.
func (w *serializableWriter) hasWork() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving = len(w.waiting) > 0
	return w.serving
}

// serveOne runs one transaction and says what was in its way.
func (w *serializableWriter) serveOne() error {
	conn, err := w.db.Conn(w.ctx)
	if err != nil {
		return w.settle(w.take(math.MaxInt), doing("begin write", err))
	}
	defer func() { _ = conn.Close() }() // gives it back
	group := w.take(maxParts)
	if len(group) == 0 {
		return nil
	}
	return w.settle(group, group.write(w.ctx, conn, w.p))
}

// take takes those who share the next transaction out of the line: who is to be
// alone is.
func (w *serializableWriter) take(most int) sharedTx {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < min(len(w.waiting), most) && (n == 0 || !w.waiting[0].alone && !w.waiting[n].alone) {
		n++
	}
	taken := slices.Clone(w.waiting[:n])
	w.waiting = slices.Delete(w.waiting, 0, n)
	return taken
}

// conflict is a conflict, and how often the unluckiest part of the party has had one.
type conflict struct {
	error
	tries int
}

func (c conflict) Unwrap() error { return c.error }

// settle decides by the outcome of a transaction who is done and who is to try
// again. It returns what makes sense to wait for.
func (w *serializableWriter) settle(group sharedTx, err error) error {
	if d := (inDoubt{}); errors.As(err, &d) {
		err = w.p.commitOutcome(group.withOutages(w.ctx), d)
	}
	switch {
	case isConflict(err):
		for _, p := range group {
			p.tries++
		}
		w.putBack(group, err, func(p *txPart) bool { return p.tries < maxTries })
		return conflict{err, group.tries()}
	case isLost(err):
		now := time.Now()
		w.putBack(group, err, func(p *txPart) bool { return p.waits(now) })
		return err
	case errors.Is(err, errPartFailed):
		w.putBack(group, err, func(*txPart) bool { return true })
	case err != nil && len(group) > 1 && !errors.Is(err, ErrCommitUnknown):
		for _, p := range group { // who is to blame shows when each is by itself
			p.alone = true
		}
		w.putBack(group, err, func(*txPart) bool { return true })
	default:
		w.putBack(group, err, func(*txPart) bool { return false })
	}
	return nil
}

// putBack puts parts that may try again back to the head of the line. The others
// are done: with err, or with what their function said.
func (w *serializableWriter) putBack(group sharedTx, err error, may func(*txPart) bool) {
	var back sharedTx
	for _, p := range group {
		switch {
		case p.panicked: // nobody listens any more
		case may(p):
			back = append(back, p)
		case err != nil:
			p.done <- err
		default:
			p.done <- p.failed
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.Concat(back, w.waiting)
	for _, p := range back {
		select {
		case p.requeued <- struct{}{}:
		default: // it was told and has not looked yet
		}
	}
}

func (w *serializableWriter) close() error {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.under.Wait()
	w.stop()
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
