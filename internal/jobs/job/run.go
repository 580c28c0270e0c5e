package job

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// work is the durable run of a job, from its stored state to its end. A stored job must
// not be lost, so work waits for an unreachable database.
func (q *Queue) work(ctx context.Context, run *durable.Run) error {
	ctx, _ = db.WaitForDatabase(ctx)
	j, fresh, err := q.find(ctx, run.ID)
	if fault.CodeOf(err) == fault.NotFound || j.State.Final() { // it has ended, and only the engine does not know
		q.clean(run.ID)
		return nil
	}
	if err != nil {
		return err
	}
	j.resumed = !fresh && !j.Started.IsZero()
	if !fresh {
		if err := q.becomeOwner(ctx, j); err != nil {
			return q.stopped(ctx, j, err)
		}
	}
	if err := q.options.Clock.Sleep(ctx, j.Due.Sub(q.options.Clock.Now())); err != nil {
		return q.stopped(ctx, j, err)
	}
	place := &place{queue: q, job: j}
	if err := place.take(ctx); err != nil {
		return q.stopped(ctx, j, err)
	}
	defer place.give()
	past, steps, err := q.past(ctx, run, j, fresh)
	if err != nil {
		return q.conclude(ctx, j, Outcome{}, err, nil)
	}
	var attempts int
	err = q.persist(ctx, func() (err error) {
		attempts, err = q.begin(ctx, j, q.options.Clock.Now(), past)
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return q.stopped(ctx, j, q.whyNotOwned(ctx, j.ID))
	case err != nil:
		return q.stopped(ctx, j, err)
	case attempts > q.options.Attempts:
		return q.conclude(ctx, j, Outcome{}, errTooManyAttempts(attempts-1), nil)
	}
	return q.perform(ctx, run, j, steps, place)
}

// find returns the job of a run: as it was submitted, if it is fresh, or as it was
// stored.
func (q *Queue) find(ctx context.Context, id string) (j Job, fresh bool, err error) {
	if c := q.following(id); c != nil {
		if submitted := c.begun(); submitted != nil {
			return *submitted, true, nil
		}
	}
	err = q.persist(ctx, func() (err error) {
		j, j.journal, err = q.load(ctx, id)
		return err
	})
	return j, false, err
}

// past returns the number of records of a run so far, and their journal entries.
func (q *Queue) past(ctx context.Context, run *durable.Run, j Job, fresh bool) (records int, steps []host.Step, err error) {
	if fresh {
		steps, err = j.steps()
		return 0, steps, err
	}
	var past [][]byte
	err = q.persist(ctx, func() (err error) {
		past, err = run.Past()
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	steps, err = j.steps(past...)
	return len(past), steps, err
}

// steps returns the journal of an unfinished job, from its records.
func (j *Job) steps(records ...[]byte) ([]host.Step, error) {
	return host.ReadJournal(slices.Concat([][]byte{j.journal}, records)...)
}

// unlimited reports whether the job runs without a place in the queue.
func (q *Queue) unlimited(j Job) bool {
	return q.options.Unlimited != nil && q.options.Unlimited(j.Spec)
}

func errTooManyAttempts(attempts int) error {
	return fault.New(fault.Internal, "the server stopped %d times while this job ran, and the job got no further", attempts).
		WithHint("the script may exhaust the machine's resources; check it before you start it again")
}

// perform runs the script, with effects answered from its journal. While it waits for
// approval, its place in the queue is given to another job.
func (q *Queue) perform(ctx context.Context, run *durable.Run, j Job, steps []host.Step, p *place) error {
	for {
		over, err := q.attempt(ctx, run, j, steps, p)
		if over {
			return err
		}
		if !errors.Is(err, errOutage) {
			err = q.pause(ctx, j, err, p)
			if err != nil {
				return q.stopped(ctx, j, err)
			}
		}
		var records [][]byte
		err = q.persist(ctx, func() (err error) {
			records, err = q.engine.Records(j.ID)
			return err
		})
		if err == nil {
			steps, err = j.steps(records...)
		}
		if err != nil {
			return q.conclude(ctx, j, Outcome{}, err, nil)
		}
	}
}

// errOutage means that a run reached its time limit because the database was
// unreachable: it continues.
var errOutage = errors.New("the time limit passed while the database was unreachable")

// attempt runs the script once. The job is not over if it waits for approval, with an
// *pausedError as the error, or if an outage of the database used up its time.
func (q *Queue) attempt(ctx context.Context, run *durable.Run, j Job, steps []host.Step, p *place) (over bool, err error) {
	c := q.following(j.ID)
	if c == nil { // cancelled meanwhile
		return true, nil
	}
	ctx, outages := db.WaitForDatabase(ctx)
	journal := host.NewJournal(run, q.boot)
	steps = withoutRefusals(steps)
	waits := &waitingHandler{then: journal, journal: journal, queue: q, job: j, live: c, place: p}
	approved, err := q.withApproval(ctx, j, steps, waits)
	if err != nil {
		return true, q.conclude(ctx, j, Outcome{}, err, nil)
	}
	replay := host.NewReplay(steps, approved.handler)
	handler, err := q.keepFiles(ctx, j, steps, replay)
	if err != nil {
		return true, q.conclude(ctx, j, Outcome{}, err, nil)
	}
	c.begin(journal)
	q.mu.Lock()
	closing := q.closing
	q.mu.Unlock()
	if closing {
		journal.Halt(durable.ErrClosing)
	}
	q.options.Events.PublishFor(j.owner, Started{ID: j.ID, Name: j.Name, Creator: j.Creator, Resumed: len(steps) > 0})
	var outcome Outcome
	running, err := q.asOwner(ctx, j.ID)
	if err == nil {
		outcome, err = q.runner.RunJob(q.traced(running, j), q.task(j, c, handler))
		waits.pauseSchedule(ctx)
	}
	late := run.Delayed() || outages.Any()
	switch stopped := journal.Err(); { // even if the script handled the error
	case errors.Is(stopped, durable.ErrClosing):
		if err := journal.Flush(); err != nil {
			q.options.Log.ErrorContext(ctx, "end of a job's journal not stored", "job", j.ID, "error", err)
		}
		<-ctx.Done() // the engine closes next
		return true, durable.ErrClosing
	case errors.Is(stopped, durable.ErrTakenOver):
		q.leave(j.ID)
		return true, durable.ErrTakenOver
	}
	// An effect that was refused for good fails the job, even if the script handled the
	// error.
	if refused := errors.Join(replay.Err(), journal.Err()); refused != nil {
		err = refused
	} else if why := unfinished(ctx, approved.paused(outcome, err), late, err); why != nil && journal.Flush() == nil {
		journal.End()
		return false, why
	}
	return true, q.conclude(ctx, j, outcome, err, journal.End())
}

// unfinished returns why a run that has stopped is not over, or nil.
func unfinished(ctx context.Context, paused *pausedError, late bool, err error) error {
	goesOn := ctx.Err() == nil
	switch {
	case goesOn && paused != nil:
		return paused
	case goesOn && late && fault.CodeOf(err) == fault.Timeout:
		return errOutage
	}
	return nil
}

// task returns what the runner needs to run a job.
func (q *Queue) task(j Job, c *liveJob, handler host.Handler) Task {
	return Task{
		ID: j.ID, Spec: j.Spec, Created: j.Created, Queue: q, Handler: handler, Temp: q.folder(j.ID), Watch: c.say,
		Progress: func(fraction float64, message string) {
			c.progress(fraction, message)
			q.options.Events.PublishFor(j.owner, Progressed{ID: j.ID, Fraction: fraction, Message: message})
		},
	}
}

// conclude stores how a job ended, if it has; otherwise it continues later.
func (q *Queue) conclude(ctx context.Context, j Job, outcome Outcome, err error, tail []byte) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, durable.ErrTakenOver) {
		q.leave(j.ID)
	}
	if errors.Is(cause, durable.ErrClosing) || errors.Is(cause, durable.ErrTakenOver) {
		return cause
	}
	j.Output, j.Finished = outcome.Output, q.options.Clock.Now()
	switch {
	case errors.Is(cause, errCancelled):
		j.State = Cancelled
	case err != nil:
		j.State, j.Error = Failed, failureOf(err)
	default:
		j.State, j.Result = Complete, outcome.Result
	}
	var stored Job
	err = q.persist(ctx, func() (err error) {
		stored, err = q.end(context.WithoutCancel(ctx), j, tail)
		return err
	})
	if errors.Is(err, durable.ErrTakenOver) || errors.Is(err, sql.ErrNoRows) { // or it was erased
		q.leave(j.ID)
	}
	if err != nil {
		return err
	}
	q.clean(j.ID)
	if stored.Finished.UnixMicro() == j.Finished.UnixMicro() { // otherwise it was cancelled meanwhile
		q.publishEnd(ctx, stored) // before those who wait for the job go on
	}
	q.leave(j.ID)
	return nil
}

// persist retries until the write succeeds: a job whose end is not stored is not over.
// It gives up when ctx ends, or when the job does not exist.
func (q *Queue) persist(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || errors.Is(err, sql.ErrNoRows) || errors.Is(err, durable.ErrTakenOver) || fault.CodeOf(err) == fault.NotFound || ctx.Err() != nil {
			return err
		}
		q.options.Log.ErrorContext(ctx, "job not stored, trying again", "error", err)
		if err := q.options.Clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// stopped ends a job that did not start, or did not continue.
func (q *Queue) stopped(ctx context.Context, j Job, err error) error {
	if errors.Is(err, errCancelled) || errors.Is(context.Cause(ctx), errCancelled) {
		q.leave(j.ID)
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, durable.ErrTakenOver) {
		err = cause
	}
	if errors.Is(err, durable.ErrTakenOver) {
		q.leave(j.ID)
	}
	if ctx.Err() != nil || errors.Is(err, durable.ErrTakenOver) {
		return err
	}
	return q.conclude(ctx, j, Outcome{}, err, nil)
}

// folder returns the job's folder, or "".
func (q *Queue) folder(id string) string {
	if q.options.TempDir == "" {
		return ""
	}
	return filepath.Join(q.options.TempDir, "job-"+id)
}

// clean removes the job's folder.
func (q *Queue) clean(id string) {
	folder := q.folder(id)
	if folder == "" {
		return
	}
	if err := os.RemoveAll(folder); err != nil {
		q.options.Log.Warn("folder of job not removed", "job", id, "error", err)
	}
}

// liveJob is the state of an unfinished job that is not stored with it: its progress and its
// output.
type liveJob struct {
	mu       sync.Mutex
	fresh    *Job // as it was submitted to this process; nil once it has begun, and if it did not come that way
	fraction float64
	message  string
	lines    []host.OutputLine
	journal  *host.Journal                   // while the script runs
	watchers map[*func(float64, string)]bool // receive progress

	// What other nodes know of the job.
	changed     bool // some of it is not stored
	restarted   bool // a new run began, so stored output is obsolete
	stored      bool // something is stored
	storedLines int  // number of stored lines
}

// enter begins to follow a job. fresh means that it was submitted just now and has no
// journal.
func (q *Queue) enter(j Job, fresh bool) {
	c := &liveJob{}
	if fresh {
		c.fresh = &j
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current[j.ID] = c
}

// begun returns the job as it was submitted, the first time it is called.
func (c *liveJob) begun() *Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.fresh
	c.fresh = nil
	return fresh
}

// leave stops following a job and wakes the callers that wait for it.
func (q *Queue) leave(id string) {
	q.mu.Lock()
	c := q.current[id]
	delete(q.current, id)
	if c != nil && c.isStored() {
		q.endedLive = append(q.endedLive, id)
	}
	q.mu.Unlock()
	q.wake(id)
}

// publishEnd publishes the end of a job. The node that stored the end does, whichever ran the job.
func (q *Queue) publishEnd(ctx context.Context, j Job) {
	q.recordOutcome(context.WithoutCancel(ctx), j)
	e := Finished{ID: j.ID, Name: j.Name, Creator: j.Creator, State: j.State}
	if j.Error != nil {
		e.Error = redact.Text(j.Error.Message)
	}
	if !j.Started.IsZero() {
		e.TookMS = j.Finished.Sub(j.Started).Milliseconds()
	}
	q.options.Events.PublishFor(j.owner, e)
}

// following returns the live state of an unfinished job, or nil.
func (q *Queue) following(id string) *liveJob {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.current[id]
}

// Running returns the number of unfinished jobs of this process.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.current)
}

func (c *liveJob) begin(journal *host.Journal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journal, c.lines, c.storedLines, c.restarted = journal, nil, 0, true
}

// halt stops the script at its next effect. The channel is closed when no call that
// must not be repeated is in progress; it is nil if no script runs.
func (c *liveJob) halt(cause error) (settled <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.journal == nil {
		return nil
	}
	return c.journal.Halt(cause)
}

func (c *liveJob) progress(fraction float64, message string) {
	c.mu.Lock()
	c.fraction, c.message, c.changed = fraction, message, true
	watchers := slices.Collect(maps.Keys(c.watchers))
	c.mu.Unlock()
	for _, see := range watchers {
		(*see)(fraction, message)
	}
}

// explain says why the job makes no progress.
func (c *liveJob) explain(message string) {
	c.mu.Lock()
	fraction := c.fraction
	c.mu.Unlock()
	c.progress(fraction, message)
}

// watch passes the latest progress to see, and every further one until stop is called.
func (c *liveJob) watch(see func(fraction float64, message string)) (stop func()) {
	c.mu.Lock()
	if c.watchers == nil {
		c.watchers = map[*func(float64, string)]bool{}
	}
	c.watchers[&see] = true
	fraction, message := c.fraction, c.message
	c.mu.Unlock()
	if fraction > 0 || message != "" {
		see(fraction, message)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, &see)
	}
}

func (c *liveJob) say(line host.OutputLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines, c.changed = append(c.lines, line), true
}

func (c *liveJob) isStored() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored
}

// overlay adds the live state to a stored job.
func (c *liveJob) overlay(j *Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j.Progress, j.Message, j.Output = c.fraction, c.message, slices.Clone(c.lines)
}
