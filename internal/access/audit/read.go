package audit

import (
	"context"
	"time"
)

// Find lists entries as Store does, those included that were just recorded.
func (l *Log) Find(ctx context.Context, f Filter) ([]Entry, error) {
	l.settle(ctx)
	return l.Store.Find(ctx, f)
}

// Chains are those of all nodes, with what was just recorded here.
func (l *Log) Chains(ctx context.Context) ([]Chain, error) {
	l.settle(ctx)
	return l.Store.Chains(ctx)
}

// Verify looks for tampering as Store does, in what was just recorded too.
func (l *Log) Verify(ctx context.Context) ([]Verified, error) {
	l.settle(ctx)
	return l.Store.Verify(ctx)
}

// settling is how long a reader waits for entries to be written. A database that is
// away for longer has no more to show. Tests wait longer.
var settling = time.Second

// settle waits until what was recorded by now is written: who has done something
// finds it in the log.
func (l *Log) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock() // or a reader that is about to wait would not hear of it
		defer l.mu.Unlock()
		l.room.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled < l.taken {
		l.rouse()
	}
	for goal := l.taken; l.settled < goal && ctx.Err() == nil; {
		l.room.Wait()
	}
}
