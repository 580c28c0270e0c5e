package db

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// part is a Write that shares its transaction with others.
type part struct {
	f        func(*Tx) error
	over     <-chan struct{} // closed when its caller's context has ended
	deadline time.Time       // after which it does not wait for a server that is away
	promised *Outages        // or it waits as long as it takes

	turn chan *Tx      // its caller is to run f
	said chan error    // what f returned, or errGone
	done chan error    // what became of it
	back chan struct{} // it waits in line again

	// These belong to whoever runs the transaction.
	tries  int   // conflicts it has had
	alone  bool  // shares with nobody
	gone   bool  // f has panicked
	failed error // what f returned the last time
}

func newPart(ctx context.Context, f func(*Tx) error, deadline time.Time) *part {
	promised, _ := ctx.Value(patientKey{}).(*Outages)
	return &part{
		f: f, over: ctx.Done(), deadline: deadline, promised: promised,
		turn: make(chan *Tx), said: make(chan error, 1), done: make(chan error, 1), back: make(chan struct{}, 1),
	}
}

var (
	errGone  = errors.New("the function of a Write panicked")
	errApart = errors.New("a part failed and must not take the others along")
)

// do runs f, where its caller waits, so that a panic is the caller's.
func (p *part) do(tx *Tx) {
	err := errGone
	defer func() { p.said <- err }()
	err = p.f(tx)
}

func (p *part) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// waits tells whether it waits for a server that is away.
func (p *part) waits(now time.Time) bool {
	if p.promised != nil {
		p.promised.met.Store(true)
		return true
	}
	return now.Before(p.deadline)
}

// party is those who share a transaction. There are no savepoints, which would
// cost every part two more round trips: when a part fails and has written
// something, all of it is undone, the part runs alone, and the others again.
// Those before it have shown that they do not fail, so nothing runs often.
type party []*part

func (g party) tries() (most int) {
	for _, p := range g {
		most = max(most, p.tries)
	}
	return most
}

// patiently is ctx with the patience that the most patient of them has.
func (g party) patiently(ctx context.Context) context.Context {
	for _, p := range g {
		if p.promised != nil {
			return context.WithValue(ctx, patientKey{}, p.promised)
		}
	}
	return ctx
}

// write runs the parts, one after the other, and commits.
func (g party) write(ctx context.Context, conn *sql.Conn, p *postgres) error {
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
		hurt = errors.Join(hurt, tx.hurt)
	}
	if len(g) == 1 && g[0].failed != nil {
		return nil // it is undone, and told
	}
	return committed(inner.Commit(), hurt)
}

// join has a part run in the transaction, and tells why it cannot go on with it.
// What the database said counts more than what the function made of it.
func (p *part) join(tx *Tx, line *pgConn, only bool) error {
	p.turn <- tx
	p.failed = <-p.said
	p.gone = errors.Is(p.failed, errGone)
	switch {
	case (isConflict(tx.hurt) || isLost(tx.hurt)) && (tx.shared || !p.isOver()):
		return tx.hurt
	case only:
		return nil
	case line.spoilt(), p.failed != nil && tx.wrote:
		p.alone = true
		return errApart
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
