// Package audit keeps who did what. Deeds are handed over in passing and written by
// one goroutine, as pages of entries; when it cannot keep up, callers wait rather
// than entries being lost. Each node's entries form a chain: every entry holds the
// hash of the one before, so that one which was changed, taken out or moved is found.
package audit

import (
	"context"
	"embed"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Entry is one thing that somebody did, or was kept from doing.
type Entry struct {
	Node string    `json:"node"`
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`

	Who     string `json:"who"`               // the principal's id
	Name    string `json:"name,omitempty"`    // and name
	Client  string `json:"client,omitempty"`  // the connection or user behind it
	Trace   string `json:"trace,omitempty"`   // trace id
	Request string `json:"request,omitempty"` // the call within it

	Action   string `json:"action"`             // Call, or what an administrator did
	Subject  string `json:"subject"`            // the tool, or what the action was about
	Args     string `json:"args,omitempty"`     // SHA-256 of the arguments
	Decision string `json:"decision,omitempty"` // allow or deny
	Rule     string `json:"rule,omitempty"`     // the rule that decided

	Size  int64  `json:"size"`            // of the result, in bytes
	Error string `json:"error,omitempty"` // its code
	Took  int64  `json:"took_us"`

	Prev string `json:"prev"` // hash of the entry before
	Hash string `json:"hash"`
}

// Call is the action of an entry about a tool.
const Call = "call"

// Options are a log's choices.
type Options struct {
	Node  string        // whose chain this process adds to; "" is "local"
	Keep  time.Duration // how long entries are kept; 0 is for ever
	Queue int           // how many may wait to be written before callers wait; 0 is 8192
	Clock clock.Clock   // nil is the machine's
	Log   *slog.Logger  // nil is nobody
}

// Log takes deeds. It is safe for concurrent use; whoever opened it closes it.
type Log struct {
	Store
	options Options
	binder  binder        // of whoever writes
	wake    chan struct{} // holds a token when there is something to write, and when there is much
	written chan struct{} // closed when the last entry is

	mu      sync.Mutex
	room    *sync.Cond // told when entries are settled
	waiting []Draft
	spare   []Draft // empty, to wait in next
	late    int     // callers for whose entries there was no room
	closed  bool
	taken   int // entries, in all
	settled int // of them: those that are kept, and those that never will be
}

// Open begins to take entries.
func Open(ctx context.Context, database *db.DB, o Options) (*Log, error) {
	if o.Node == "" {
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
	store, err := openStore(ctx, database, o.Log)
	if err != nil {
		return nil, err
	}
	l := &Log{Store: *store, options: o, wake: make(chan struct{}, 1), written: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	go l.write() //nolint:contextcheck // until Close
	return l, nil
}

// Record takes a deed. It waits only while too many others are to be written.
func (l *Log) Record(d Draft) {
	if d.At.IsZero() {
		d.At = l.options.Clock.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.options.Log.Warn("an entry came after the audit log was closed", "action", d.Action, "subject", d.Subject)
		return
	}
	for l.late++; l.taken-l.settled >= l.options.Queue; {
		l.room.Wait()
	}
	l.late--
	l.taken++
	l.waiting = append(l.waiting, d)
	if len(l.waiting) == 1 || len(l.waiting) == l.enough() {
		l.rouse()
	}
}

// enough is how many entries are written without waiting for more.
func (l *Log) enough() int { return min(most, l.options.Queue) }

// rouse has whoever writes look at what there is.
func (l *Log) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close writes what still waits, unless ctx ends first.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.rouse()
	select {
	case <-l.written:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// most is how many entries share a transaction.
const most = 512

// gathering is how long entries wait for others to be written with: a commit for
// each call would cost more than the call, and so would waking whoever writes.
const gathering = 100 * time.Millisecond

// write keeps entries until the log is closed and none is left.
func (l *Log) write() {
	defer close(l.written)
	ctx := context.Background()
	for {
		<-l.wake
		l.gather()
		deeds, over := l.take()
		for batch := range slices.Chunk(deeds, most) {
			l.persist(ctx, batch)
		}
		if over {
			return
		}
		l.giveBack(deeds)
	}
}

// gather waits a moment for entries that come after the first, unless they have come
// while those before were written.
func (l *Log) gather() {
	l.mu.Lock()
	ready := l.closed || len(l.waiting) >= l.enough()
	l.mu.Unlock()
	if ready {
		return
	}
	moment := time.NewTimer(gathering)
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-l.wake: // there are many, or no more will come
	}
}

// take hands out what is to be written next, and tells whether that is the end.
func (l *Log) take() (deeds []Draft, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	deeds, l.waiting, l.spare = l.waiting, l.spare, nil
	return deeds, l.closed && l.late == 0
}

// giveBack has the memory of deeds that were written used again, unless it is that
// of a rush.
func (l *Log) giveBack(deeds []Draft) {
	if cap(deeds) > 4*most {
		return
	}
	clear(deeds)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = deeds[:0]
}

// closeTimeout is how many times a batch is tried: while the database is away for a
// moment callers wait; one that stays away must not hold up the end of the program.
const patience = 8

func (l *Log) persist(ctx context.Context, batch []Draft) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.settled += len(batch)
		l.room.Broadcast()
	}()
	wait := backoff.Policy{First: 50 * time.Millisecond, Max: 5 * time.Second}
	for try := 1; ; try++ {
		err := l.add(ctx, l.options.Node, batch, &l.binder)
		if err == nil {
			return
		}
		if try >= patience && l.isClosed() {
			l.options.Log.ErrorContext(ctx, "audit entries are lost", "entries", len(batch), "error", err)
			return
		}
		l.options.Log.WarnContext(ctx, "audit entries not written", "entries", len(batch), "error", err)
		_ = l.options.Clock.Sleep(ctx, wait.Delay(try)) // ctx never ends
	}
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// sweep is how often old entries are let go.
const sweep = time.Hour

// RunRetention lets entries go that are older than they are kept, now and every hour until
// ctx ends.
func (l *Log) RunRetention(ctx context.Context) {
	for l.options.Keep > 0 {
		if err := l.DeleteBefore(ctx, l.options.Clock.Now().Add(-l.options.Keep)); err != nil && ctx.Err() == nil {
			l.options.Log.WarnContext(ctx, "old audit entries not let go", "error", err)
		}
		if l.options.Clock.Sleep(ctx, sweep) != nil {
			return
		}
	}
}
