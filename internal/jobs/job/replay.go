package job

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
)

// Journal returns the effects of a job so far with their outcomes, in the order of the
// outcomes, followed by the effects in progress.
func (q *Queue) Journal(ctx context.Context, id string) ([]host.Step, error) {
	if err := q.check(ctx, principal.Job, principal.See, id); err != nil {
		return nil, err
	}
	_, tail, err := q.load(ctx, id)
	if err != nil {
		return nil, err
	}
	records, err := q.engine.Records(id)
	if err != nil {
		return nil, err
	}
	if c := q.following(id); c != nil && tail == nil {
		tail = c.tail()
	}
	return host.ReadJournal(append(records, tail)...)
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
