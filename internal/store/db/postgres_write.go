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

// serializableWriter runs Writes in serializable transactions. Postgres rolls a
// transaction back if no serial order explains what it read; it is then run again.
// Small tables and the end of an index cause false conflicts, so the Writes of one
// node do not run concurrently: those that are queued when a transaction begins share
// it (sharedTx), and conflicts arise only between nodes. Later Writes wait for the
// next transaction, which sees what other nodes have committed since.
type serializableWriter struct {
	p    *postgres
	db   *sql.DB
	ctx  context.Context // of the background goroutine, until close
	stop context.CancelFunc

	mu      sync.Mutex
	waiting []*txPart
	serving bool // the background goroutine runs
	ended   bool
	under   sync.WaitGroup // Writes, and the background goroutine
}

const (
	maxParts = 60  // parts of one transaction: bounds how long the first part waits
	maxTries = 100 // of a part that conflicts: more mean that its caller does something wrong
)

// again is the delay before conflicting parts are retried.
var again = backoff.Policy{First: time.Millisecond, Max: 100 * time.Millisecond, Jitter: 1}

func newSerializableWriter(p *postgres) *serializableWriter {
	ctx, stop := context.WithCancel(context.Background())
	return &serializableWriter{p: p, db: p.open(1, once), ctx: ctx, stop: stop}
}

// write queues a part, runs it whenever the transaction asks for it, which may be more
// than once, and returns the outcome.
func (w *serializableWriter) write(ctx context.Context, f func(*Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := newTxPart(ctx, f, time.Now().Add(w.p.timeout))
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
			over = nil // it is part of a running transaction
		}
	}
}

// join queues a part, unless the database is closed.
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

// leave removes a part from the queue, if it is still there.
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

// serve runs transactions until the queue is empty.
func (w *serializableWriter) serve() {
	for failures := 0; w.hasWork(); {
		err := w.serveOne()
		switch c := (conflict{}); {
		case isLost(err):
			failures++
			_ = sleep(w.ctx, reconnectDelay.Delay(failures)) // an error means that the writer is closed
		case errors.As(err, &c) && c.tries > 1:
			_ = sleep(w.ctx, again.Delay(c.tries))
		default:
			failures = 0
		}
	}
}

// hasWork reports whether the queue has parts; if not, the next join starts serve again.
func (w *serializableWriter) hasWork() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving = len(w.waiting) > 0
	return w.serving
}

// serveOne runs one transaction and returns why it has to be retried, if so.
func (w *serializableWriter) serveOne() error {
	conn, err := w.db.Conn(w.ctx)
	if err != nil {
		return w.settle(w.take(math.MaxInt), doing("begin write", err))
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	group := w.take(maxParts)
	if len(group) == 0 {
		return nil
	}
	return w.settle(group, group.write(w.ctx, conn, w.p))
}

// take removes the parts of the next transaction from the queue. A part that failed or
// conflicted alone runs alone on its retry.
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

// conflict is a conflict between transactions, with the number of tries of the part
// that had most.
type conflict struct {
	error
	tries int
}

func (c conflict) Unwrap() error { return c.error }

// settle decides by the outcome of a transaction which parts are done and which are
// retried. It returns the error that serve waits for.
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
		w.putBack(group, err, func(p *txPart) bool { return w.p.mayWait(now, p.deadline, p.outages) })
		return err
	case errors.Is(err, errPartFailed):
		w.putBack(group, err, func(*txPart) bool { return true })
	case err != nil && len(group) > 1 && !errors.Is(err, ErrCommitUnknown):
		for _, p := range group { // run alone, the part that fails shows itself
			p.alone = true
		}
		w.putBack(group, err, func(*txPart) bool { return true })
	default:
		w.putBack(group, err, func(*txPart) bool { return false })
	}
	return nil
}

// putBack puts the parts that may be retried back to the head of the queue. The others
// are done: with err, or with what their function returned.
func (w *serializableWriter) putBack(group sharedTx, err error, may func(*txPart) bool) {
	var back sharedTx
	for _, p := range group {
		switch {
		case p.panicked: // its caller has left
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
		default: // signalled already
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

// txPart is a Write that shares its transaction with other Writes.
type txPart struct {
	f         func(*Tx) error
	cancelled <-chan struct{} // closed when the caller's context has ended
	deadline  time.Time       // after it, the part does not wait for an unreachable server
	outages   *Outages        // not nil: it waits without a deadline

	turn     chan *Tx      // tells the caller to run f
	result   chan error    // what f returned, or errGone
	done     chan error    // the outcome of the Write
	requeued chan struct{} // the part is in the queue again

	// Used only by the goroutine that runs the transaction.
	tries    int   // conflicts so far
	alone    bool  // needs a transaction of its own
	panicked bool  // f has panicked
	failed   error // what f returned in the last attempt
}

func newTxPart(ctx context.Context, f func(*Tx) error, deadline time.Time) *txPart {
	promised, _ := ctx.Value(outagesKey{}).(*Outages)
	return &txPart{
		f: f, cancelled: ctx.Done(), deadline: deadline, outages: promised,
		turn: make(chan *Tx), result: make(chan error, 1), done: make(chan error, 1), requeued: make(chan struct{}, 1),
	}
}

var (
	errPanicked   = errors.New("the function of a Write panicked")
	errPartFailed = errors.New("a part failed; the others are run again without it")
)

// do runs f in the caller's goroutine, so that a panic reaches the caller.
func (p *txPart) do(tx *Tx) {
	err := errPanicked
	defer func() { p.result <- err }()
	err = p.f(tx)
}

func (p *txPart) isCancelled() bool {
	select {
	case <-p.cancelled:
		return true
	default:
		return false
	}
}

// sharedTx are the Writes that share a transaction. It has no savepoints, which would
// cost two more round trips per part: when a part fails after it wrote something, the
// whole transaction is rolled back, the part is retried alone, and the others are run
// again. The parts before it did not fail, so few are run more than twice.
type sharedTx []*txPart

func (g sharedTx) tries() (most int) {
	for _, p := range g {
		most = max(most, p.tries)
	}
	return most
}

// withOutages is ctx, without a timeout if one of the parts has none.
func (g sharedTx) withOutages(ctx context.Context) context.Context {
	for _, p := range g {
		if p.outages != nil {
			return context.WithValue(ctx, outagesKey{}, p.outages)
		}
	}
	return ctx
}

// write runs the parts, one after the other, and commits.
func (g sharedTx) write(ctx context.Context, conn *sql.Conn, p *postgres) error {
	var line *pgConn
	err := conn.Raw(func(c any) error {
		line = c.(*pgConn)
		line.exclusive = g.tries() > 0
		return nil
	})
	if err != nil {
		return doing("begin write", err)
	}
	inner, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return doing("begin write", err)
	}
	defer func() { _ = inner.Rollback() }() // does nothing after a commit
	var hurt error
	for _, member := range g {
		tx := &Tx{tx: inner, dialect: p, shared: len(g) > 1}
		if err := member.join(tx, line, len(g) == 1); err != nil {
			return err
		}
		hurt = errors.Join(hurt, tx.failure)
	}
	if len(g) == 1 && g[0].failed != nil {
		return nil // rolled back; the caller gets the error
	}
	return committed(inner.Commit(), hurt)
}

// join runs a part in the transaction. It returns an error if the transaction cannot
// continue. An error of the database counts more than what the function returned.
func (p *txPart) join(tx *Tx, line *pgConn, only bool) error {
	p.turn <- tx
	p.failed = <-p.result
	p.panicked = errors.Is(p.failed, errPanicked)
	switch {
	case (isConflict(tx.failure) || isLost(tx.failure)) && (tx.shared || !p.isCancelled()):
		return tx.failure
	case only:
		return nil
	case line.mustRollback(), p.failed != nil && tx.wrote:
		p.alone = true
		return errPartFailed
	}
	return nil
}

// committed is the outcome of a commit. If a function ignored the error of a statement,
// that error explains why the commit failed.
func committed(err, hurt error) error {
	switch {
	case err == nil:
		return nil
	case hurt != nil && !errors.As(err, new(inDoubt)):
		return doing("commit", errors.Join(hurt, err))
	}
	return doing("commit", err)
}
