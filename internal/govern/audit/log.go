// Package audit stores who did what. One goroutine writes what callers record, many
// entries per transaction; when it cannot keep up, callers wait, so that no entry is
// lost. The entries of a node form a chain: each holds the hash of the one before, so
// that Verify finds an entry that was changed, deleted or moved.
package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/store/db"
)

// Options are a log's choices.
type Options struct {
	Node string        // whose chain this process appends to; "" is "local"
	Keep time.Duration // how long entries are stored; 0 is forever
	// KeepOrgs is Keep for single organisations.
	KeepOrgs map[string]time.Duration
	// Activity is how long entries have sessions and previews of arguments and results, which
	// pages show; 0: they have none.
	Activity time.Duration
	Queue    int // how many entries may be unwritten before callers wait; 0 is 8192
	// Continue lets calls of tools that may change something go on while entries cannot
	// be written, until the queue is full.
	Continue bool
	// Spool is the folder for entries that wait for the database, so that they survive the
	// process; "" keeps them in memory.
	Spool  string
	Export slog.Handler // gets every entry after it is stored; may be nil
	Clock  clock.Clock  // nil is the machine's
	Log    *slog.Logger // nil discards
}

// Log records entries. It is safe for concurrent use. Close it when done.
type Log struct {
	Store
	options Options
	wake    chan struct{} // has a token when there is something to write, and when there is much
	written chan struct{} // closed after the last entry is written

	spooling sync.Mutex // taken before mu
	spool    spool

	mu       sync.Mutex
	done     *sync.Cond // signalled when entries are settled
	taken    []Entry    // being written
	pending  []Entry
	spare    []Entry // empty; becomes pending next
	blocked  int     // callers that wait because the queue is full
	closed   bool
	accepted int    // all entries so far
	settled  int    // of them, those written or given up
	kept     int    // of those, how many are left to the next process
	lost     int    // entries of which nothing is left
	failure  error  // why the last attempt to write failed; nil after one that succeeded
	attempts int    // to write
	retry    func() // begins the next attempt at once; nil unless one is waited for
}

// Open opens the store and starts the goroutine that writes.
func Open(ctx context.Context, database *db.DB, o Options) (*Log, error) {
	if o.Node = valid(o.Node); o.Node == "" {
		o.Node = "local"
	}
	if o.Queue <= 0 {
		o.Queue = 8192
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	store, err := OpenStore(ctx, database)
	if err != nil {
		return nil, err
	}
	l := &Log{Store: *store, options: o, wake: make(chan struct{}, 1), written: make(chan struct{}), spool: newSpool(o.Spool)}
	l.done = sync.NewCond(&l.mu)
	l.recover(ctx)
	go l.write() //nolint:contextcheck // until Close
	return l, nil
}

// Record stores an entry soon; the log adds its place in the chain, and the time if it has none. It
// waits only while the queue is full, and ctx lasts: then the entry is stored beyond the queue, up to
// as many again, and lost after that, with a message.
func (l *Log) Record(ctx context.Context, e Entry) {
	if e.At.IsZero() {
		e.At = l.options.Clock.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.options.Log.WarnContext(ctx, "audit entry recorded after the log was closed", "action", e.Action, "subject", e.Subject)
		return
	}
	if l.awaitSpace(ctx); l.accepted-l.settled >= 2*l.options.Queue {
		l.noteLost(1)
		l.options.Log.ErrorContext(ctx, "audit entry lost", "action", e.Action, "subject", e.Subject, "error", l.failure)
		return
	}
	l.accepted++
	l.pending = append(l.pending, e)
	if len(l.pending) == 1 || len(l.pending) == l.fullBatch() {
		l.signal()
	}
}

// awaitSpace waits until the queue has space, or ctx ends; mu is held.
func (l *Log) awaitSpace(ctx context.Context) {
	if l.accepted-l.settled < l.options.Queue {
		return
	}
	l.blocked++
	defer context.AfterFunc(ctx, l.wakeWaiting)()
	for l.accepted-l.settled >= l.options.Queue && ctx.Err() == nil {
		l.done.Wait()
	}
	l.blocked--
}

// wakeWaiting lets those that wait look whether their context has ended.
func (l *Log) wakeWaiting() {
	l.mu.Lock() // or one that is about to wait would miss it
	defer l.mu.Unlock()
	l.done.Broadcast()
}

// fullBatch is how many entries are written without waiting for more.
func (l *Log) fullBatch() int { return min(maxBatch, l.options.Queue) }

// signal wakes the writer.
func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close writes what is pending, unless ctx ends first.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
	select {
	case <-l.written:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxBatch is how many entries share a transaction.
const maxBatch = 512

// batchDelay is how long an entry waits for others that are written with it: a commit
// for each call would cost more than the call.
const batchDelay = 100 * time.Millisecond

// write writes entries until the log is closed and none is left.
func (l *Log) write() {
	defer close(l.written)
	defer func() { _ = l.spool.leave() }() // what it has is on the disk
	ctx := context.Background()
	for {
		<-l.wake
		l.collect()
		entries, last := l.take()
		for batch := range slices.Chunk(entries, maxBatch) {
			l.persist(ctx, batch)
		}
		if last {
			return
		}
		l.reuse(entries)
	}
}

// collect waits for more entries after the first, unless a full batch is pending
// already.
func (l *Log) collect() {
	l.mu.Lock()
	ready := l.closed || len(l.pending) >= l.fullBatch()
	l.mu.Unlock()
	if ready {
		return
	}
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake: // the batch is full, a reader waits, or the log closes
	}
}

// take returns what is to be written next, and whether it is the last batch.
func (l *Log) take() (entries []Entry, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, l.pending, l.spare = l.pending, l.spare, nil
	l.taken = entries
	return entries, l.closed && l.blocked == 0
}

// reuse keeps the memory of written entries, unless it is unusually large.
func (l *Log) reuse(entries []Entry) {
	if cap(entries) > 4*maxBatch {
		return
	}
	clear(entries)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = entries[:0]
}

// closeAttempts is how often a batch is tried once the log is closed: an unreachable
// database must not prevent the program from ending.
const closeAttempts = 8

func (l *Log) persist(ctx context.Context, batch []Entry) {
	kept := l.tryPersist(ctx, slices.Clone(batch)) // others read the entries meanwhile
	l.mu.Lock()
	l.settled += len(batch)
	l.taken = l.taken[len(batch):]
	if kept {
		l.kept += len(batch)
	}
	l.done.Broadcast()
	l.mu.Unlock()
	l.emptySpool()
}

// tryPersist writes a batch. When the log is closed it gives up, and reports whether the next
// process will write it.
func (l *Log) tryPersist(ctx context.Context, batch []Entry) (kept bool) {
	defer l.spoolWhileWaiting()()
	wait := backoff.Policy{First: 50 * time.Millisecond, Max: 5 * time.Second}
	for try, asked := 1, false; ; try++ {
		err := l.add(ctx, l.options.Node, batch)
		l.setFailure(err)
		if err == nil {
			l.export(ctx, batch)
			l.recordLost()
			return false
		}
		if l.isClosed() && l.spoolNow() == nil {
			l.options.Log.WarnContext(ctx, "audit entries kept for the next start", "entries", len(batch), "folder", l.spool.folder, "error", err)
			return true
		}
		if try >= closeAttempts && l.isClosed() {
			l.options.Log.ErrorContext(ctx, "audit entries lost", "entries", len(batch), "error", err)
			return false
		}
		if !asked {
			l.options.Log.WarnContext(ctx, "audit entries not written", "entries", len(batch), "error", err)
		}
		asked = l.pause(ctx, wait.Delay(try))
	}
}

// pause waits before the next attempt, and reports whether a caller asked for it.
func (l *Log) pause(ctx context.Context, d time.Duration) (asked bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.setRetry(cancel)
	defer l.setRetry(nil)
	return l.options.Clock.Sleep(ctx, d) != nil
}

func (l *Log) setRetry(now func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retry = now
}

// retryNow has an attempt made at once if the next is only waited for, and waits for its outcome:
// what was in the way may be gone.
func (l *Log) retryNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, l.wakeWaiting)()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retry == nil {
		return
	}
	l.retry()
	for before := l.attempts; l.attempts == before && ctx.Err() == nil; {
		l.done.Wait()
	}
}

func (l *Log) setFailure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
	l.attempts++
	l.done.Broadcast()
}

// Waiting returns how many entries are not in the database yet; false if there is no log.
func (l *Log) Waiting() (int64, bool) {
	if l == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.accepted - l.settled), true
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Find is Store.Find, with the entries that were just recorded.
func (l *Log) Find(ctx context.Context, f Filter) ([]Entry, error) {
	l.flush(ctx)
	return l.Store.Find(ctx, f)
}

// Chains is Store.Chains, with the entries that were just recorded.
func (l *Log) Chains(ctx context.Context) ([]Chain, error) {
	l.flush(ctx)
	return l.Store.Chains(ctx)
}

// Verify is Store.Verify, with the entries that were just recorded.
func (l *Log) Verify(ctx context.Context) ([]Verified, error) {
	l.flush(ctx)
	return l.Store.Verify(ctx)
}

// flushTimeout is how long a reader waits for entries to be written: a busy machine needs
// seconds. Tests wait longer.
var flushTimeout = 10 * time.Second

// failingTimeout is how long a reader waits if the last attempt to write has failed.
const failingTimeout = time.Second

// flush waits until what was recorded by now is written, so that a caller finds its
// own entries.
func (l *Log) flush(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	enough := flushTimeout
	if l.failure != nil {
		enough = min(enough, failingTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	defer context.AfterFunc(ctx, l.wakeWaiting)()
	if l.settled < l.accepted {
		l.signal()
	}
	for goal := l.accepted; l.settled < goal && ctx.Err() == nil; {
		l.done.Wait()
	}
}
