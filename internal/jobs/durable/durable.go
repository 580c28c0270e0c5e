// Package durable runs work that survives the process. A run has an id and a list
// of records; both are on disk before anybody is told of them. When the process
// dies, the next one starts every unfinished run again with the records it left,
// and the work carries on from there.
//
// It wraps DBOS Transact, on our own database: a run is a workflow there, a
// record is a step. Nothing of it is seen outside.
package durable

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // teaches DBOS to read SQLite's errors

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Work does one run. It returns when the run is over: an error is only noted,
// what became of the run is the work's own to store. When ctx ends because the
// engine closes, the run is not over and starts again with the next engine.
type Work func(ctx context.Context, run *Run) error

// Options are an engine's choices. The zero value is ready to use.
type Options struct {
	// Node says which unfinished runs are this engine's to start again: those of
	// the same node. "" is the node of a program that is alone on its database.
	Node string
	// Log hears what a person should look at; nil means nobody.
	Log *slog.Logger
	// CloseTimeout is how long Close waits for runs to end; zero means 10 s.
	CloseTimeout time.Duration
}

// ErrClosing is the cause of a run's context when the engine closes.
var ErrClosing = fault.New(fault.Unavailable, "the server is shutting down").
	WithHint("the job goes on by itself when the server runs again")

// Engine starts runs and keeps their records. It is safe for concurrent use.
type Engine struct {
	guests       db.External
	dbos         dbos.Context
	source       *dbos.DataSource // the same database
	work         Work
	node         string
	closeTimeout time.Duration
	log          *slog.Logger
	closed       chan struct{} // closed when the engine closes
	works        sync.WaitGroup

	mu     sync.Mutex
	active map[string]*flight
	places map[string]chan struct{} // of runs that DBOS has begun here; told when one comes back
}

// flight is a run under way.
type flight struct {
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when its work has returned
}

// Open prepares an engine over a database, which stays the caller's to close.
// Nothing runs before Launch.
func Open(ctx context.Context, database *db.DB, work Work, o Options) (*Engine, error) {
	if o.CloseTimeout == 0 {
		o.CloseTimeout = 10 * time.Second
	}
	if o.Node == "" {
		o.Node = alone
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	guests, err := database.External(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	var inner dbos.Context
	closed := make(chan struct{})
	err = guests.Exclusive(ctx, func() (err error) {
		inner, err = dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
			AppName: "luanette", SQLiteSystemDB: guests.SQL, SystemDBPool: guests.Postgres, DatabaseSchema: guests.Schema,
			Serializer: octets{}, ExecutorID: o.Node,
			// Runs of an older program are ours too: they bring what they need along.
			ApplicationVersion: "1",
			Logger:             slog.New(warnings(o.Log, closed)),
		})
		return err
	})
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, err, "open the engine of durable runs"), guests.Close())
	}
	source, err := sourceOf(inner, guests)
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, err, "open the engine of durable runs"), guests.Close())
	}
	e := &Engine{guests: guests, dbos: inner, source: source, work: work, node: o.Node, closeTimeout: o.CloseTimeout, log: o.Log, closed: closed, active: map[string]*flight{}, places: map[string]chan struct{}{}}
	// However often the process died, a run is tried again.
	dbos.RegisterWorkflow(inner, e.perform, dbos.WithWorkflowName("run"), dbos.WithMaxRecoveryAttempts(0))
	return e, nil
}

func sourceOf(inner dbos.Context, g db.External) (*dbos.DataSource, error) {
	if g.Postgres != nil {
		return dbos.NewDataSource(inner, g.Postgres, dbos.WithDataSourceSchema(g.Schema))
	}
	return dbos.NewDataSource(inner, g.SQL)
}

// Launch starts the engine, and with it every run this node left unfinished.
func (e *Engine) Launch() error {
	if err := errors.Join(e.attend(), dbos.Launch(e.dbos)); err != nil {
		return fault.Wrap(fault.Internal, err, "start the engine of durable runs")
	}
	return nil
}

// Start begins the run of that id in a goroutine of its own; it is on disk when
// Start returns. An id that was started before, by whatever process, is left
// alone.
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

// Cancel ends the context of a run that is under way here, and tells whether
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

// Records are what a run has recorded so far, in order.
func (e *Engine) Records(id string) ([][]byte, error) {
	steps, err := dbos.GetWorkflowSteps(e.dbos, id, dbos.WithStepsLoadOutput(true))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the records of run %s", id)
	}
	records := make([][]byte, len(steps))
	for i, step := range steps {
		record, ok := step.Output.([]byte)
		if !ok {
			return nil, fault.New(fault.Internal, "record %d of run %s cannot be read", i, id)
		}
		records[i] = record
	}
	return records, nil
}

// Forget removes runs that are over, with their records.
func (e *Engine) Forget(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := dbos.DeleteWorkflows(e.dbos, ids); err != nil {
		return fault.Wrap(fault.Internal, err, "remove %d runs", len(ids))
	}
	return nil
}

// Close ends the runs, without finishing them, and waits for their work to
// return.
func (e *Engine) Close() error {
	e.mu.Lock()
	for _, run := range e.active {
		run.cancel(ErrClosing)
	}
	close(e.closed)
	e.mu.Unlock()
	e.works.Wait()
	if e.guests.Postgres != nil {
		_ = e.RemoveNode(e.node) // somebody else will
	}
	// DBOS closes the pool it was given.
	if err := errors.Join(e.guests.Detach(), dbos.Shutdown(e.dbos, e.closeTimeout), e.guests.Close()); err != nil {
		return fault.Wrap(fault.Internal, err, "close the engine of durable runs")
	}
	return nil
}

// perform is the workflow: every run is one of it. DBOS begins a run once in a
// process, so one that was taken away keeps its place here, for when it comes back.
func (e *Engine) perform(inner dbos.Context, id []byte) ([]byte, error) {
	back := e.open(string(id))
	defer e.shut(string(id))
	for {
		if over, err := e.attempt(inner, string(id)); over {
			return nil, err
		}
		if !e.comesBack(inner, string(id), back) {
			// DBOS takes a run for failed unless it ends by its context, and ends as such:
			// that the context is over may not have been told to it yet.
			return nil, inner.Err()
		}
	}
}

// attempt does the work of a run, and tells whether the run is over.
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

// enter notes that a run is under way here. The same one may be already, when it
// was taken from this node and came back to it: then that one ends first.
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
	e.active[id] = &flight{cancel, make(chan struct{})}
	return true
}

func (e *Engine) leave(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.active[id].over)
	delete(e.active, id)
	e.works.Done()
}
