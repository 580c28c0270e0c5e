// Package durable runs work that survives the process. A run has an id and a list
// of records; both are on disk before the call that made them returns. When the
// process dies, the next one starts every unfinished run again with its records, and
// the work continues from there.
//
// It wraps DBOS Transact on our own database: a run is a workflow, a record is a
// step. No other package sees DBOS.
package durable

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // lets DBOS classify SQLite's errors

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Work does one run. When it returns, the run is over; its error is only logged by
// DBOS, so the work stores the outcome itself. When ctx ends because the engine
// closes, the run is not over and starts again with the next engine.
type Work func(ctx context.Context, run *Run) error

// Options are an engine's choices. The zero value is ready to use.
type Options struct {
	// Node is the name under which runs are started. An engine restarts the unfinished
	// runs of its own node. "" is for a process that has the database to itself.
	Node string
	// Log gets warnings; nil discards them.
	Log *slog.Logger
	// CloseTimeout is how long Close waits for runs to end; zero means 10 s.
	CloseTimeout time.Duration
}

// ErrClosing is the cause of a run's context when the engine closes.
var ErrClosing = fault.New(fault.Unavailable, "the server is shutting down").
	WithHint("the job continues when the server runs again")

// Engine starts runs and stores their records. It is safe for concurrent use.
type Engine struct {
	external     db.External
	dbos         dbos.Context
	source       *dbos.DataSource // the same database
	work         Work
	node         string
	closeTimeout time.Duration
	log          *slog.Logger
	closed       chan struct{} // closed when the engine closes
	works        sync.WaitGroup

	mu      sync.Mutex
	active  map[string]*activeRun
	returns map[string]chan struct{} // runs that DBOS has started here; signalled when a taken-over run comes back
}

// activeRun is a run whose work has not returned.
type activeRun struct {
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when the work has returned
}

// Open prepares an engine on a database, which the caller closes after the engine.
// No run starts before Launch.
func Open(ctx context.Context, database *db.DB, work Work, o Options) (*Engine, error) {
	if o.CloseTimeout == 0 {
		o.CloseTimeout = 10 * time.Second
	}
	if o.Node == "" {
		o.Node = soleNode
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	external, err := database.External(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	var inner dbos.Context
	closed := make(chan struct{})
	err = external.Exclusive(ctx, func() (err error) {
		inner, err = dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
			AppName: applicationName, SQLiteSystemDB: external.SQL, SystemDBPool: external.Postgres, DatabaseSchema: external.Schema,
			Serializer: serializer{}, ExecutorID: o.Node,
			// One version for all releases: runs of an older release are recovered too.
			ApplicationVersion: "1",
			Logger:             slog.New(warningsOnly(o.Log, closed)),
		})
		return err
	})
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, err, "open the workflow engine"), external.Close())
	}
	source, err := newDataSource(inner, external)
	if err != nil { // what NewContext has started ends, as in Close
		return nil, errors.Join(fault.Wrap(fault.Internal, err, "open the workflow engine"), dbos.Shutdown(inner, o.CloseTimeout), external.Close())
	}
	e := &Engine{external: external, dbos: inner, source: source, work: work, node: o.Node, closeTimeout: o.CloseTimeout, log: o.Log, closed: closed, active: map[string]*activeRun{}, returns: map[string]chan struct{}{}}
	// A run is retried however often the process died.
	dbos.RegisterWorkflow(inner, e.perform, dbos.WithWorkflowName("run"), dbos.WithMaxRecoveryAttempts(0))
	return e, nil
}

func newDataSource(inner dbos.Context, x db.External) (*dbos.DataSource, error) {
	if x.Postgres != nil {
		return dbos.NewDataSource(inner, x.Postgres, dbos.WithDataSourceSchema(x.Schema))
	}
	return dbos.NewDataSource(inner, x.SQL)
}

// Launch starts the engine and every unfinished run of this node.
func (e *Engine) Launch() error {
	if err := errors.Join(e.listenQueue(), dbos.Launch(e.dbos)); err != nil {
		return fault.Wrap(fault.Internal, err, "start the workflow engine")
	}
	return nil
}

// Start starts a run in a goroutine of its own; it is on disk when Start returns. If
// a run with this id was started before, by any process, Start does nothing.
func (e *Engine) Start(id string) error {
	select {
	case <-e.closed:
		return ErrClosing
	default:
	}
	if _, err := dbos.RunWorkflow(e.dbos, e.perform, []byte(id), dbos.WithWorkflowID(id)); err != nil {
		return fault.Wrap(fault.Internal, err, "start run %s", id)
	}
	return nil
}

// Cancel ends the context of a run that is active on this node, and tells whether
// there was one.
func (e *Engine) Cancel(id string, cause error) bool {
	e.mu.Lock()
	run := e.active[id]
	e.mu.Unlock()
	if run != nil {
		run.cancel(cause)
	}
	return run != nil
}

// AwaitEnd waits until a run that was cancelled does nothing here any more.
func (e *Engine) AwaitEnd(ctx context.Context, id string) {
	e.mu.Lock()
	run := e.active[id]
	e.mu.Unlock()
	if run == nil {
		return
	}
	select {
	case <-run.over:
	case <-ctx.Done():
	}
}

// Records returns what a run has recorded so far, in order.
func (e *Engine) Records(id string) ([][]byte, error) {
	steps, err := dbos.GetWorkflowSteps(e.dbos, id, dbos.WithStepsLoadOutput(true))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the records of run %s", id)
	}
	records := make([][]byte, len(steps))
	for i, step := range steps {
		record, ok := step.Output.([]byte)
		if !ok {
			return nil, fault.New(fault.Internal, "record %d of run %s is not readable", i, id)
		}
		records[i] = record
	}
	return records, nil
}

// Forget deletes finished runs with their records.
func (e *Engine) Forget(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := dbos.DeleteWorkflows(e.dbos, ids); err != nil {
		return fault.Wrap(fault.Internal, err, "delete %d runs", len(ids))
	}
	return nil
}

// removeTimeout is how long Close waits for the database to remove the node's queue.
const removeTimeout = 2 * time.Second

// Close stops the active runs, which stay unfinished, and waits for their work to
// return, for at most Options.CloseTimeout. It ends also while the database is unreachable.
func (e *Engine) Close() error {
	e.mu.Lock()
	for _, run := range e.active {
		run.cancel(ErrClosing)
	}
	close(e.closed)
	e.mu.Unlock()
	if !endsWithin(e.closeTimeout, e.works.Wait) {
		e.log.Warn("jobs have not stopped, closing without them", "after", e.closeTimeout)
	}
	// DBOS tries to remove the queue until Shutdown.
	if e.external.Postgres != nil && !endsWithin(removeTimeout, func() { _ = e.RemoveNode(e.node) }) {
		e.log.Warn("database unreachable, leaving this node's queue to the other nodes")
	}
	if err := errors.Join(e.dbos.Shutdown(e.dbos, e.closeTimeout), e.external.Close()); err != nil {
		return fault.Wrap(fault.Internal, err, "close the workflow engine")
	}
	return nil
}

// endsWithin runs f, and reports whether it has returned in time.
func endsWithin(enough time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(enough):
		return false
	}
}

// perform is the DBOS workflow of every run. DBOS starts a run only once per process,
// so the workflow of a run that was taken over stays here and waits for its return.
func (e *Engine) perform(inner dbos.Context, id []byte) ([]byte, error) {
	returned := e.expectReturn(string(id))
	defer e.forgetReturn(string(id))
	for {
		if over, err := e.attempt(inner, string(id)); over {
			return nil, err
		}
		if !e.awaitReturn(inner, string(id), returned) {
			// With the context's own error DBOS leaves the run unfinished; any other
			// result would mark it as done or failed.
			return nil, inner.Err()
		}
	}
}

// attempt does the work of a run once, and tells whether the run is over.
func (e *Engine) attempt(inner dbos.Context, id string) (over bool, err error) {
	ctx, cancel := context.WithCancelCause(context.Context(inner))
	defer cancel(nil)
	if !e.enter(id, cancel) {
		return false, nil
	}
	err = e.work(ctx, &Run{ID: id, engine: e, inner: inner})
	e.leave(id)
	return !errors.Is(context.Cause(ctx), ErrClosing) && !errors.Is(err, ErrTakenOver), err
}

// enter marks a run as active. If an earlier attempt is still active, because the run
// was taken over and came back, enter stops that one first.
func (e *Engine) enter(id string, cancel context.CancelCauseFunc) bool {
	for {
		e.mu.Lock()
		before := e.active[id]
		select {
		case <-e.closed:
			e.mu.Unlock()
			return false
		default:
		}
		if before == nil {
			break
		}
		e.mu.Unlock()
		before.cancel(ErrTakenOver)
		<-before.over
	}
	defer e.mu.Unlock()
	e.works.Add(1)
	e.active[id] = &activeRun{cancel, make(chan struct{})}
	return true
}

func (e *Engine) leave(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.active[id].over)
	delete(e.active, id)
	e.works.Done()
}

// Run is an active run. Its records are a list: those of earlier processes come
// first, and Record appends to it.
type Run struct {
	ID string

	engine *Engine
	inner  dbos.Context // carries the position in the workflow

	mu      sync.Mutex // DBOS numbers steps without a lock
	past    int        // records read by Past that DBOS has not replayed yet
	next    int        // number of the next record, on Postgres
	delayed atomic.Bool
}

// Past returns what earlier processes recorded. Call it once, before the first Record.
func (r *Run) Past() ([][]byte, error) {
	records, err := r.engine.Records(r.ID)
	r.past, r.next = len(records), len(records)
	return records, err
}

// Record appends a record and returns when it is on disk. Calls run one after the
// other.
func (r *Run) Record(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine.external.Postgres != nil {
		return r.recordShared(data)
	}
	for ; r.past > 0; r.past-- { // DBOS counts the steps of earlier processes too
		if _, err := r.step(nil); err != nil {
			return err
		}
	}
	_, err := r.step(data)
	return err
}

// step runs the next step of the workflow: DBOS answers an old one from its record,
// and a new one records data. RunAsTransaction needs one transaction per step where
// RunAsStep needs three.
func (r *Run) step(data []byte) ([]byte, error) {
	body := func(context.Context, dbos.Tx) ([]byte, error) { return data, nil }
	out, err := dbos.RunAsTransaction(r.inner, r.engine.source, body, dbos.WithStepName("record"))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "record a step of run %s", r.ID)
	}
	return out, nil
}

// serializer stores bytes in DBOS's text columns.
type serializer struct{}

// Name is stored with every value, so it must never change.
func (serializer) Name() string { return "octets" }

// Encode takes []byte or nil.
func (serializer) Encode(data any) (*string, error) {
	var text string
	switch v := data.(type) {
	case nil:
	case []byte:
		text = "." + base64.RawStdEncoding.EncodeToString(v)
	default:
		return nil, fmt.Errorf("encode %T: not bytes", data)
	}
	return &text, nil
}

// Decode returns []byte, nil for an empty text.
func (serializer) Decode(data *string) (any, error) {
	if data == nil || *data == "" {
		return []byte(nil), nil
	}
	return base64.RawStdEncoding.DecodeString((*data)[1:])
}

// warningsOnly passes warnings and errors on. DBOS logs everything it does, and once
// closing is closed it logs the interruption of its own queries, which is expected.
func warningsOnly(log *slog.Logger, closing <-chan struct{}) slog.Handler {
	return warnings{log.Handler(), closing}
}

type warnings struct {
	slog.Handler
	closing <-chan struct{}
}

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	select {
	case <-w.closing:
		if isInterruption(r) {
			return nil
		}
	default:
	}
	return w.Handler.Handle(ctx, r)
}

// isInterruption tells whether a record is about a cancelled query.
func isInterruption(r slog.Record) (is bool) {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			is = is || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "canceling statement due to user request")
		}
		return !is
	})
	return is
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs), w.closing}
}

func (w warnings) WithGroup(name string) slog.Handler {
	return warnings{w.Handler.WithGroup(name), w.closing}
}
