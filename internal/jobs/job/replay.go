package job

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// errRepeated means that a job with the same key was submitted before.
var errRepeated = errors.New("a job with this key exists")

// SubmitOnce is Submit for a request that may come again: as long as keep lasts, the
// first job with the same key stays the only one, on all nodes. Of a repeated request
// only the id of that job is returned.
func (q *Queue) SubmitOnce(ctx context.Context, s Spec, key string, keep time.Duration) (j Job, repeated bool, err error) {
	id, now := newID(), q.options.Clock.Now()
	var earlier string
	j, err = q.submit(ctx, id, s, func(tx *db.Tx) error {
		earlier = ""
		err := tx.QueryRow(ctx, "SELECT job FROM job_keys WHERE key = $1 AND expires > $2", key, now.UnixMicro()).Scan(&earlier)
		switch {
		case err == nil:
			return errRepeated
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO job_keys (key, job, expires) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO UPDATE SET job = excluded.job, expires = excluded.expires`, key, id, now.Add(keep).UnixMicro())
		return err
	})
	if errors.Is(err, errRepeated) {
		return Job{ID: earlier}, true, nil
	}
	return j, false, err
}

// removeKeys removes keys whose time is over. It writes only if there are any.
func (q *Queue) removeKeys(ctx context.Context) error {
	now, over := q.options.Clock.Now().UnixMicro(), false
	err := q.db.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM job_keys WHERE expires <= $1)", now).Scan(&over)
	if err != nil || !over {
		return err
	}
	return q.db.Exec(ctx, "DELETE FROM job_keys WHERE expires <= $1", now)
}

// forgetKey removes the key of a job that could not be started, so that the request can
// be repeated.
func (q *Queue) forgetKey(ctx context.Context, id string) error {
	return q.db.Exec(ctx, "DELETE FROM job_keys WHERE job = $1", id)
}

// Journal returns the effects of a job so far with their outcomes, in the order of the
// outcomes, followed by the effects in progress.
func (q *Queue) Journal(ctx context.Context, id string) ([]host.Step, error) {
	if err := q.check(ctx, principal.Job, principal.See, id); err != nil {
		return nil, err
	}
	j, tail, err := q.load(ctx, id)
	if err != nil {
		return nil, err
	}
	records, err := q.engine.Records(id)
	if err != nil {
		return nil, err
	}
	if c := q.following(id); c != nil && !j.State.Final() {
		tail = slices.Concat(tail, c.tail())
	}
	steps, err := host.ReadJournal(append(records, tail)...)
	if j.isResumed() { // the tail begins with what was done before
		slices.SortStableFunc(steps, func(a, b host.Step) int { return a.At.Compare(b.At) })
	}
	return steps, err
}

// tail returns the part of a running script's journal that is stored with the job.
func (c *liveJob) tail() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.journal == nil {
		return nil
	}
	return slices.Clone(c.journal.Tail())
}

// Script is a script to run in place of a job's own.
type Script struct {
	Source   string
	Hash     string // of a stored script, or ""
	Language string // its language; "" if the hash or the runner tells
}

// Replayed is the result of a replay.
type Replayed struct {
	Outcome
	Error *Failure // why the script failed, or where it diverged
	Steps int      // entries in the journal
	Left  int      // entries that the script did not reach
	// Diverged means that the script requested an effect that its journal does not have.
	Diverged bool
}

// Replay runs a job's script again offline: the journal answers all effects, and none
// is performed. If script has a source, it runs in place of the job's own.
func (q *Queue) Replay(ctx context.Context, id string, other Script) (Replayed, error) {
	if err := q.check(ctx, principal.Job, principal.See, id); err != nil {
		return Replayed{}, err
	}
	j, _, err := q.load(ctx, id)
	if err != nil {
		return Replayed{}, err
	}
	if !j.State.Final() {
		return Replayed{}, fault.New(fault.Conflict, "job %s is %s: only ended jobs can be replayed", id, j.State).
			WithHint("wait for it with job_poll")
	}
	steps, err := q.Journal(ctx, id)
	if err != nil {
		return Replayed{}, err
	}
	spec := j.Spec
	if other.Source != "" {
		spec.Source, spec.Hash, spec.Language = other.Source, other.Hash, other.Language
	}
	replay := host.NewReplay(steps, nil)
	outcome, err := q.runner.RunJob(ctx, Task{
		ID: id, Spec: spec, Handler: replay, Offline: true, Progress: func(float64, string) {}, Watch: func(host.OutputLine) {},
	})
	replayed := Replayed{Outcome: outcome, Steps: len(steps), Left: replay.Left()}
	if refused := replay.Err(); refused != nil {
		replayed.Error, replayed.Diverged = failureOf(refused), true
	} else if err != nil {
		replayed.Error = failureOf(err)
	}
	return replayed, nil
}

// Plan makes the plan of a job again that waits for approval: from its journal on, nothing
// is carried out.
func (q *Queue) Plan(ctx context.Context, id string) (host.Plan, error) {
	j, _, err := q.load(ctx, id)
	if err != nil {
		return host.Plan{}, err
	}
	records, err := q.engine.Records(id)
	if err != nil {
		return host.Plan{}, err
	}
	steps, err := host.ReadJournal(records...)
	if err != nil {
		return host.Plan{}, err
	}
	if ctx, err = q.asOwner(principal.With(ctx, principal.Local()), id); err != nil {
		return host.Plan{}, err
	}
	rehearsal, err := q.rehearsal(ctx, runInfoOf(j), steps)
	if err != nil {
		return host.Plan{}, err
	}
	_, err = q.rehearse(ctx, id, j.Spec, host.NewReplay(withoutRefusals(steps), rehearsal))
	return host.NewPlan(rehearsal, err), nil
}
