package db

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

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

// waits reports whether the part still waits for an unreachable server.
func (p *txPart) waits(now time.Time) bool {
	if p.outages != nil {
		p.outages.met.Store(true)
		return true
	}
	return now.Before(p.deadline)
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
