package job

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Options are a queue's choices. The zero value is ready to use.
type Options struct {
	Workers      int           // jobs that run at once; zero means 16
	KeepComplete time.Duration // how long a complete job is kept; zero means 5 minutes
	KeepFailed   time.Duration // how long any other finished job is kept; zero means 30 minutes
	Attempts     int           // starts in a row without a step forward, before a job is given up; zero means 50
	Grace        time.Duration // how long Close waits for calls under way; zero means 5 s
	ReadOnly     bool          // jobs are looked at and replayed; none is run, and another process may have the queue
	// Node is this process among several that run jobs of one database: then whoever
	// knows that a node is gone calls Adopt. "" is the only one that does.
	Node    string
	TempDir string // below it every job has a folder of its own; "" gives them none
	// Unlimited tells jobs that take no turn: whoever runs them bounds them, and jobs
	// that have a turn may wait for them. Nil means none.
	Unlimited func(Spec) bool
	// CurrentPrincipal is who somebody is now that began a job earlier; its error ends the
	// job. Nil: they are who they were.
	CurrentPrincipal func(ctx context.Context, was principal.Principal) (principal.Principal, error)
	Approvals        Approvals    // who decides what jobs may do; nil lets them do all
	Tools            tool.Source  // for the shapes of made-up answers in the plan of one that waits; may be nil
	Events           *event.Bus   // may be nil
	Clock            clock.Clock  // nil means the machine's
	Log              *slog.Logger // nil means nobody
}

func (o Options) orDefault() Options {
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.KeepComplete == 0 {
		o.KeepComplete = 5 * time.Minute
	}
	if o.KeepFailed == 0 {
		o.KeepFailed = 30 * time.Minute
	}
	if o.Attempts == 0 {
		o.Attempts = 50
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Queue keeps jobs and runs them. It is safe for concurrent use.
type Queue struct {
	db      *db.DB
	engine  *durable.Engine
	runner  Runner
	options Options
	boot    string // this process, in journals
	turns   *fairQueue
	release func() error // gives up the claim on the database's jobs

	stop       context.CancelFunc // ends what runs in the background
	background sync.WaitGroup
	planned    chan struct{} // told when schedules change

	mu      sync.Mutex
	current map[string]*liveJob          // every job that is not over and is this node's
	waiters map[string][]chan<- struct{} // of jobs that are other nodes'
	spoken  []string                     // jobs that are over, of which other nodes were told how far they are
	closing bool                         // what begins now is to do nothing
}

// Open makes a queue over a database, whose tables it brings up to date, and goes
// on with every job that is not over. A database has one queue at a time, unless
// there are nodes: while another process has it open, the error is a fault.Conflict. The database stays
// the caller's; the queue is to be closed before it.
func Open(ctx context.Context, database *db.DB, runner Runner, o Options) (_ *Queue, err error) {
	o = o.orDefault()
	if err := database.Migrate(ctx, "job", migrations); err != nil {
		return nil, err
	}
	release := func() error { return nil }
	if !o.ReadOnly && o.Node == "" {
		if release, err = database.Claim(ctx, "jobs"); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release())
		}
	}()
	q := &Queue{
		db: database, release: release, runner: runner, options: o, boot: newID(), turns: newFairQueue(o.Workers),
		stop: func() {}, planned: make(chan struct{}, 1), current: map[string]*liveJob{}, waiters: map[string][]chan<- struct{}{},
	}
	if q.engine, err = durable.Open(ctx, database, q.work, durable.Options{Node: o.Node, Log: o.Log}); err != nil || o.ReadOnly {
		return q, err
	}
	return q, q.launch(ctx)
}

// launch goes on with what is not over, and begins what happens by itself.
func (q *Queue) launch(ctx context.Context) error {
	var jobs []Job
	var err error
	if q.options.Node == "" {
		jobs, err = q.unfinished(ctx)
	}
	if err != nil {
		return errors.Join(fault.Wrap(fault.Internal, err, "find unfinished jobs"), q.engine.Close())
	}
	for _, j := range jobs {
		q.enter(j, false)
	}
	if err := q.engine.Launch(); err != nil {
		return errors.Join(err, q.engine.Close())
	}
	patient, _ := db.WaitForDatabase(context.WithoutCancel(ctx)) // schedules were promised to be kept
	rest, stop := context.WithCancel(patient)
	q.stop = stop
	q.background.Go(func() { q.startRest(rest, jobs) })
	q.background.Go(func() { q.tidy(rest) })
	q.background.Go(func() { q.keepTime(rest) })
	if q.options.Node != "" {
		q.background.Go(func() { q.listen(rest) })
		q.background.Go(func() { q.spread(rest) })
	}
	return nil
}

// writable refuses what only the process that runs the jobs can do.
func (q *Queue) writable() error {
	if !q.options.ReadOnly {
		return nil
	}
	return fault.New(fault.Unavailable, "this process does not run jobs").
		WithHint("ask the server that runs them, with --server or at its address; `luanette serve` starts one")
}

// startRest starts jobs that were stored by a process which died before it could
// start them. Those that were started are left alone by the engine.
func (q *Queue) startRest(ctx context.Context, jobs []Job) {
	for _, j := range jobs {
		if ctx.Err() != nil {
			return
		}
		if err := q.engine.Start(j.ID); err != nil {
			q.options.Log.ErrorContext(ctx, "job not started", "job", j.ID, "error", err)
		}
	}
}

// Close stops running jobs where they are; they go on when a queue is opened over
// the same database again. Calls under way that must not be made twice are given
// Options.Grace to end.
func (q *Queue) Close() error {
	q.stop()
	q.background.Wait()
	q.halt()
	return errors.Join(q.engine.Close(), q.release())
}

// halt lets running scripts do nothing further and waits for the calls under way,
// until the grace is over.
func (q *Queue) halt() {
	q.mu.Lock()
	q.closing = true
	var running []<-chan struct{}
	for _, c := range q.current {
		if settled := c.halt(durable.ErrClosing); settled != nil {
			running = append(running, settled)
		}
	}
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), q.options.Grace)
	defer cancel()
	for _, settled := range running {
		select {
		case <-settled:
		case <-ctx.Done():
			return
		}
	}
}

// Submit stores a job and starts it as soon as it is due and has its turn. It is
// on disk when Submit returns.
func (q *Queue) Submit(ctx context.Context, s Spec) (Job, error) {
	if err := q.writable(); err != nil {
		return Job{}, err
	}
	s, err := s.check()
	if err != nil {
		return Job{}, err
	}
	now := q.options.Clock.Now()
	j := Job{ID: newID(), Spec: s, State: Pending, Created: now, Due: now.Add(s.Delay)}
	if s.Start.After(j.Due) {
		j.Due = s.Start
	}
	if err := q.db.Write(ctx, func(tx *db.Tx) error { return q.insertJob(ctx, tx, j) }); err != nil {
		return Job{}, fault.Wrap(fault.Internal, err, "store job")
	}
	q.admit(j)
	if err := q.engine.Start(j.ID); err != nil {
		return Job{}, errors.Join(err, q.withdraw(ctx, j.ID))
	}
	return j, nil
}

// admit begins to follow a job that was stored just now, and tells of it.
func (q *Queue) admit(j Job) {
	q.enter(j, true)
	q.options.Events.Publish(Submitted{ID: j.ID, Name: j.Name, Creator: j.Creator, Tags: j.Tags})
}

// withdraw takes back a job that could not be started.
func (q *Queue) withdraw(ctx context.Context, id string) error {
	q.leave(id)
	return q.remove(context.WithoutCancel(ctx), []string{id})
}

// Cancel ends a job. It is stored as cancelled when Cancel returns, and its script
// stops at once, with the call it waits for. A job that is over stays as it is:
// then the answer is false.
func (q *Queue) Cancel(ctx context.Context, id string) (bool, error) {
	if err := q.writable(); err != nil {
		return false, err
	}
	if err := q.mine(ctx, unknown, id); err != nil {
		return false, err
	}
	c := q.following(id)
	done, err := q.revokeHere(ctx, id, c)
	if err != nil {
		return false, fault.Wrap(fault.Internal, err, "cancel job %s", id)
	}
	if !done {
		_, _, err := q.load(ctx, id) // over, or unknown
		return false, err
	}
	if !q.engine.Cancel(id, errCancelled) && (c == nil || c.tells()) {
		q.settle(ctx, id)
	}
	return true, nil
}

// errCancelled is the cause that ends a cancelled job.
var errCancelled = fault.New(fault.Cancelled, "the job was cancelled")

// revokeHere is revoke, for which this node is to tell of the end.
func (q *Queue) revokeHere(ctx context.Context, id string, c *liveJob) (done bool, err error) {
	if c != nil {
		c.cancelling.Lock()
		defer c.cancelling.Unlock()
		defer func() { c.untold = c.untold || done || err != nil }() // nobody else would tell, if it is stored
	}
	return q.revoke(ctx, id, q.options.Clock.Now())
}

// tells says, once, whether this node has to tell of the end of a job that was
// cancelled: it does if it stored that, whoever runs the job.
func (c *liveJob) tells() bool {
	c.cancelling.Lock()
	defer c.cancelling.Unlock()
	untold := c.untold
	c.untold = false
	return untold
}

// toldElsewhere says whether another tells of the end of a cancelled job whose work
// is over.
func (q *Queue) toldElsewhere(id string) bool {
	c := q.following(id)
	return q.options.Node != "" && (c == nil || !c.tells())
}

// settle tells everybody of the end of a job whose work is not under way.
func (q *Queue) settle(ctx context.Context, id string) {
	if j, _, err := q.load(ctx, id); err == nil {
		q.finished(j)
	}
}

// Retention is how long a job is kept after it ended in that state.
func (q *Queue) Retention(s State) time.Duration {
	if s == Complete {
		return q.options.KeepComplete
	}
	return q.options.KeepFailed
}

// tidy removes what is kept long enough, now and then.
func (q *Queue) tidy(ctx context.Context) {
	every := min(q.options.KeepComplete, q.options.KeepFailed, time.Minute)
	for q.options.Clock.Sleep(ctx, every) == nil {
		if err := q.sweep(ctx); err != nil && ctx.Err() == nil {
			q.options.Log.WarnContext(ctx, "old jobs not removed", "error", err)
		}
	}
}

// sweep removes the jobs whose time is over, with their journals.
func (q *Queue) sweep(ctx context.Context) error {
	now := q.options.Clock.Now()
	for {
		ids, err := q.expired(ctx, now.Add(-q.options.KeepComplete), now.Add(-q.options.KeepFailed))
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := q.engine.Forget(ids...); err != nil {
			return err
		}
		if err := q.remove(ctx, ids); err != nil {
			return err
		}
	}
}
