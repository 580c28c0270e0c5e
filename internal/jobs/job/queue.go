package job

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	silent "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options configure a queue. The zero value is ready to use.
type Options struct {
	Workers       int           // maximum number of running jobs; zero means 16
	KeepComplete  time.Duration // retention of complete jobs; zero means 7 days
	KeepFailed    time.Duration // retention of other ended jobs; zero means 30 days
	KeepCount     int           // maximum number of ended jobs; zero means 5000
	KeepScheduled int           // maximum number of ended jobs of one schedule; zero means 50
	Attempts      int           // starts in a row without progress before a job fails; zero means 50
	Grace         time.Duration // how long Close waits for calls in progress; zero means 5 s
	ReadOnly      bool          // jobs can be read and replayed, but not run; another process may have the queue open
	// Node is the id of this process if several share the database; the caller then
	// calls TakeOver when a node dies. "" means that no other process runs jobs.
	Node    string
	TempDir string // each job has a folder below it; "" means none
	// Unlimited reports jobs that run without a place in the queue: their runner limits
	// them, and jobs that have a place may wait for them. Nil means none.
	Unlimited func(Spec) bool
	// CurrentPrincipal returns the current rights of the principal that created a job;
	// its error ends the job. Nil means that rights do not change.
	CurrentPrincipal func(ctx context.Context, was principal.Principal) (principal.Principal, error)
	// Admit counts a new job of the caller, or refuses it with fault.Limit, in the
	// transaction that stores it; nil admits all.
	Admit func(ctx context.Context, tx *db.Tx) error
	// LoginWait is how long a job waits until its owner has logged in to an upstream; zero
	// means a day. LoginTopic is notified of logins; "" means that jobs try now and then.
	LoginWait  time.Duration
	LoginTopic string
	// UpstreamWait is how long a job waits for an upstream that cannot be reached; zero means
	// 15 minutes.
	UpstreamWait time.Duration

	Approvals Approvals   // decides what jobs may do; nil allows all
	Tools     tool.Source // gives the output schemas for plans of jobs that wait, and how calls are undone; may be nil
	// Revert returns how calls of a tool are undone, where the tool itself does not say it;
	// may be nil.
	Revert func(tool.Ref) (tool.Revert, bool)
	Kept   Kept             // stores what was in files before jobs changed them; nil: those changes cannot be undone
	Shares principal.Shares // what owners share with others; nil: nothing
	Events *event.Bus       // may be nil
	Traces Traces           // nil: jobs are not part of traces
	Tracer trace.Tracer     // records how jobs ended; nil: nothing does
	Meter  metric.Meter     // records how long they took; nil: nothing does
	Clock  clock.Clock      // nil means the machine's
	Log    *slog.Logger     // nil discards
}

func (o Options) orDefault() Options {
	const day = 24 * time.Hour
	o.Workers = cmp.Or(max(o.Workers, 0), 16)
	o.KeepComplete = cmp.Or(o.KeepComplete, 7*day)
	o.KeepFailed = cmp.Or(o.KeepFailed, 30*day)
	o.KeepCount = cmp.Or(o.KeepCount, 5000)
	o.KeepScheduled = cmp.Or(o.KeepScheduled, 50)
	o.Attempts = cmp.Or(o.Attempts, 50)
	o.LoginWait = cmp.Or(o.LoginWait, day)
	o.UpstreamWait = cmp.Or(o.UpstreamWait, 15*time.Minute)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	if o.Traces == nil {
		o.Traces = noTraces{}
	}
	if o.Tracer == nil {
		o.Tracer = silent.Tracer{}
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Queue stores jobs and runs them. It is safe for concurrent use.
type Queue struct {
	db      *db.DB
	engine  *durable.Engine
	runner  Runner
	options Options
	boot    string // id of this process in journals
	turns   *fairQueue
	release func() error // releases the claim on the database's jobs

	durations metric.Float64Histogram

	stop       context.CancelFunc // ends the background goroutines
	background sync.WaitGroup
	planned    chan struct{} // signalled when schedules change

	mu        sync.Mutex
	current   map[string]*liveJob          // the unfinished jobs of this node, by id
	waiters   map[string][]chan<- struct{} // callers that wait for the end of jobs, by id
	endedLive []string                     // ended jobs whose stored progress is to be removed
	closing   bool                         // jobs that start now do nothing
}

// Open opens the queue of a database, creates or updates its tables, and continues all
// unfinished jobs. A database has one queue at a time, unless Options.Node is set:
// while another process has it open, the error is a fault.Conflict. The caller closes
// the queue before the database.
func Open(ctx context.Context, database *db.DB, runner Runner, o Options) (_ *Queue, err error) {
	o = o.orDefault()
	if err := database.Migrate(ctx, "job", Migrations); err != nil {
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
		db: database, release: release, runner: runner, options: o, boot: newID(), turns: newFairQueue(o.Workers), durations: newDurations(o.Meter),
		stop: func() {}, planned: make(chan struct{}, 1), current: map[string]*liveJob{}, waiters: map[string][]chan<- struct{}{},
	}
	if q.engine, err = durable.Open(ctx, database, q.work, durable.Options{Node: o.Node, Log: o.Log}); err != nil || o.ReadOnly {
		return q, err
	}
	return q, q.launch(ctx)
}

// launch continues unfinished jobs and starts the background goroutines.
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
	waiting, _ := db.WaitForDatabase(context.WithoutCancel(ctx)) // schedules must not be lost
	rest, stop := context.WithCancel(waiting)
	q.stop = stop
	q.background.Go(func() { q.startUnstarted(rest, jobs) })
	q.background.Go(func() { q.tidy(rest) })
	q.background.Go(func() { q.runSchedules(rest) })
	if q.options.Node != "" {
		q.background.Go(func() { q.listen(rest) })
		q.background.Go(func() { q.storeUpdates(rest) })
	}
	return nil
}

// writable returns an error if this process does not run jobs.
func (q *Queue) writable() error {
	if !q.options.ReadOnly {
		return nil
	}
	return fault.New(fault.Unavailable, "this process does not run jobs").
		WithHint("ask the server that runs them, with --server or at its address; `luanette serve` starts one")
}

// startUnstarted starts jobs that a process stored but did not start before it died. The
// engine ignores those that were started.
func (q *Queue) startUnstarted(ctx context.Context, jobs []Job) {
	for _, j := range jobs {
		if ctx.Err() != nil {
			return
		}
		if err := q.engine.Start(j.ID); err != nil {
			q.options.Log.ErrorContext(ctx, "job not started", "job", j.ID, "error", err)
		}
	}
}

// Close stops running jobs; they continue when a queue is opened over the same database
// again. Calls in progress that must not be repeated get Options.Grace to end.
func (q *Queue) Close() error {
	q.stop()
	q.background.Wait()
	q.halt()
	return errors.Join(q.engine.Close(), q.release())
}

// halt stops running scripts at their next effect and waits for the calls in progress,
// for at most Options.Grace.
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

// Submit stores a job and starts it when it is due and has its turn. The job is on disk
// when Submit returns.
func (q *Queue) Submit(ctx context.Context, s Spec) (Job, error) {
	return q.submit(ctx, newID(), s, nil)
}

// submit is Submit with a new id. check, if it is not nil, may refuse the job in the
// transaction that stores it.
func (q *Queue) submit(ctx context.Context, id string, s Spec, check func(*db.Tx) error) (Job, error) {
	if err := q.writable(); err != nil {
		return Job{}, err
	}
	s, err := s.check()
	if err != nil {
		return Job{}, err
	}
	now := q.options.Clock.Now()
	j := Job{ID: id, Spec: s, State: Pending, Created: now, Due: now.Add(s.Delay)}
	if s.Start.After(j.Due) {
		j.Due = s.Start
	}
	j.origin, j.owner = q.options.Traces.Origin(ctx), principal.OwnerOf(ctx)
	j.TraceID = q.traceID(ctx, j)
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		if check != nil {
			if err := check(tx); err != nil {
				return err
			}
		}
		return q.insertJob(ctx, tx, j)
	})
	if fault.CodeOf(err) == fault.Limit {
		return Job{}, err
	}
	if err != nil {
		return Job{}, fault.Wrap(fault.Internal, err, "store job")
	}
	q.admit(j)
	if err := q.engine.Start(j.ID); err != nil {
		return Job{}, errors.Join(err, q.withdraw(ctx, j.ID))
	}
	return j, nil
}

// admit begins to follow a job that was stored just now, and publishes it.
func (q *Queue) admit(j Job) {
	q.enter(j, true)
	q.options.Events.PublishFor(j.owner, Submitted{ID: j.ID, Name: j.Name, Creator: j.Creator, Tags: j.Tags})
}

// withdraw removes a job that could not be started.
func (q *Queue) withdraw(ctx context.Context, id string) error {
	q.leave(id)
	ctx = context.WithoutCancel(ctx)
	return errors.Join(q.remove(ctx, []string{id}), q.forgetKey(ctx, id))
}

// Cancel ends a job. When Cancel returns, the job is stored as cancelled and its script
// stops, with the call in progress. It returns false if the job has ended before.
func (q *Queue) Cancel(ctx context.Context, id string) (bool, error) {
	if err := q.writable(); err != nil {
		return false, err
	}
	if err := q.check(ctx, principal.Job, principal.Edit, id); err != nil {
		return false, err
	}
	done, err := q.revoke(ctx, id, q.options.Clock.Now())
	if err != nil {
		return false, fault.Wrap(fault.Internal, err, "cancel job %s", id)
	}
	if !done {
		_, _, err := q.load(ctx, id) // ended, or unknown
		return false, err
	}
	if !q.engine.Cancel(id, errCancelled) { // a run that is active leaves when its output is stored
		q.leave(id)
	}
	if j, _, err := q.load(ctx, id); err == nil { // otherwise only the event is lost
		q.publishEnd(ctx, j)
	}
	return true, nil
}

// errCancelled is the cause of the context of a cancelled job.
var errCancelled = fault.New(fault.Cancelled, "the job was cancelled")

// Retention returns how long a job is stored after it ended in a state.
func (q *Queue) Retention(s State) time.Duration {
	if s == Complete {
		return q.options.KeepComplete
	}
	return q.options.KeepFailed
}

// fairQueue limits the number of running jobs and shares their places between creators.
// A free place goes to the creator with the fewest running jobs, among equals to the
// one served longest ago; within a creator to the highest priority, then to the first
// in the queue.
type fairQueue struct {
	mu       sync.Mutex
	free     int
	counted  uint64 // counts arrivals and places given, to order them
	creators map[string]*creator
}

// creator is the creator of jobs that run or wait.
type creator struct {
	running int
	last    uint64 // count at its arrival, or when it last got a place
	waiting []*waiter
}

type waiter struct {
	priority int
	ready    chan struct{}
}

func newFairQueue(limit int) *fairQueue {
	return &fairQueue{free: limit, creators: map[string]*creator{}}
}

// take waits for a place, which give returns. Its error is the cause of ctx.
func (t *fairQueue) take(ctx context.Context, who string, priority int) error {
	w := &waiter{priority, make(chan struct{})}
	t.mu.Lock()
	c := t.creators[who]
	if c == nil {
		t.counted++
		c = &creator{last: t.counted}
		t.creators[who] = c
	}
	at := sort.Search(len(c.waiting), func(i int) bool { return c.waiting[i].priority < priority })
	c.waiting = slices.Insert(c.waiting, at, w)
	t.serve()
	t.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(c.waiting, w); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		t.forget(who, c)
	} else { // it got a place meanwhile
		t.release(who)
	}
	return context.Cause(ctx)
}

// give returns a place that take gave.
func (t *fairQueue) give(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release(who)
}

func (t *fairQueue) release(who string) {
	c := t.creators[who]
	c.running--
	t.free++
	t.forget(who, c)
	t.serve()
}

func (t *fairQueue) forget(who string, c *creator) {
	if c.running == 0 && len(c.waiting) == 0 {
		delete(t.creators, who)
	}
}

// serve gives free places to waiting jobs.
func (t *fairQueue) serve() {
	for t.free > 0 {
		next := t.next()
		if next == nil {
			return
		}
		t.free--
		t.counted++
		next.running, next.last = next.running+1, t.counted
		close(next.waiting[0].ready)
		next.waiting = next.waiting[1:]
	}
}

// next returns the creator whose turn it is, or nil if no job waits.
func (t *fairQueue) next() *creator {
	var best *creator
	for _, c := range t.creators {
		if len(c.waiting) == 0 {
			continue
		}
		if best == nil || c.running < best.running || c.running == best.running && c.last < best.last {
			best = c
		}
	}
	return best
}
