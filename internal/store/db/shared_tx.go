package db

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// txPart is a Write that shares its transaction with others.
type txPart struct {
	f         func(*Tx) error
	cancelled <-chan struct{} // closed when its caller's context has ended
	deadline  time.Time       // after which it does not wait for a server that is away
	outages   *Outages        // or it waits as long as it takes

	turn     chan *Tx      // its caller is to run f
	result   chan error    // what f returned, or errGone
	done     chan error    // what became of it
	requeued chan struct{} // it waits in line again

	// These belong to whoever runs the transaction.
	tries    int   // conflicts it has had
	alone    bool  // shares with nobody
	panicked bool  // f has panicked
	failed   error // what f returned the last time
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
	errPartFailed = errors.New("a part failed and must not take the others along")
)

// do runs f, where its caller waits, so that a panic is the caller's.
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

// waits tells whether it waits for a server that is away.
func (p *txPart) waits(now time.Time) bool {
	if p.outages != nil {
		p.outages.met.Store(true)
		return true
	}
	return now.Before(p.deadline)
}

// sharedTx is those who share a transaction. There are no savepoints, which would
// cost every part two more round trips: when a part fails and has written
// something, all of it is undone, the part runs alone, and the others again.
// Those before it have shown that they do not fail, so nothing runs often.
type sharedTx []*txPart

func (g sharedTx) tries() (most int) {
	for _, p := range g {
		most = max(most, p.tries)
	}
	return most
}

// withOutages is ctx with the patience that the most patient of them has.
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
	defer func() { _ = inner.Rollback() }() // unless it was committed
	var hurt error
	for _, member := range g {
		tx := &Tx{tx: inner, dialect: p, shared: len(g) > 1}
		if err := member.join(tx, line, len(g) == 1); err != nil {
			return err
		}
		hurt = errors.Join(hurt, tx.failure)
	}
	if len(g) == 1 && g[0].failed != nil {
		return nil // it is undone, and told
	}
	return committed(inner.Commit(), hurt)
}

// join has a part run in the transaction, and tells why it cannot go on with it.
// What the database said counts more than what the function made of it.
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

// committed tells what came of a commit: an error of a statement that a function
// kept to itself explains why it did not.
func committed(err, hurt error) error {
	switch {
	case err == nil:
		return nil
	case hurt != nil && !errors.As(err, new(inDoubt)):
		return doing("commit", errors.Join(hurt, err))
	}
	return doing("commit", err)
}
