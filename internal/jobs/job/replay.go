package job

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

// Journal is what a job did to the world so far, and what came of it: in the
// order of the outcomes, then what is under way.
func (q *Queue) Journal(ctx context.Context, id string) ([]host.Step, error) {
	if err := q.mine(ctx, unknown, id); err != nil {
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

// tail is what the journal of a running script keeps.
func (c *liveJob) tail() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.journal == nil {
		return nil
	}
	return slices.Clone(c.journal.Tail())
}

// Script is a script that is tried in place of a job's own.
type Script struct {
	Source   string
	Hash     string // of a stored script, or ""
	Language string // what it is written in; "" where the hash or the runner tells
}

// Replayed is what a script did when it was answered from a journal.
type Replayed struct {
	Outcome
	Error *Failure // why it failed, or where it left its journal
	Steps int      // in the journal
	Left  int      // of them not asked for: the script did less than it did then
	// Diverged tells that the script wanted something else than its journal has.
	Diverged bool
}

// Replay runs a job's script again offline: whatever it asks of the world is
// answered from its journal, and nothing is done. Another script, if it has a
// source, is run in place of the job's own.
func (q *Queue) Replay(ctx context.Context, id string, other Script) (Replayed, error) {
	if err := q.mine(ctx, unknown, id); err != nil {
		return Replayed{}, err
	}
	j, _, err := q.load(ctx, id)
	if err != nil {
		return Replayed{}, err
	}
	if !j.State.Final() {
		return Replayed{}, fault.New(fault.Conflict, "job %s is %s: only what is over can be replayed", id, j.State).
			WithHint("wait for it with job_poll")
	}
	steps, err := q.Journal(ctx, id)
	if err != nil {
		return Replayed{}, err
	}
	spec := j.Spec
	if other.Source != "" {
		spec.Source, spec.Hash = other.Source, other.Hash
	}
	door := host.NewReplay(steps, nil)
	outcome, err := q.runner.RunJob(ctx, Task{
		ID: id, Spec: spec, Language: other.Language, Handler: door, Offline: true, Progress: func(float64, string) {}, Watch: func(host.OutputLine) {},
	})
	replayed := Replayed{Outcome: outcome, Steps: len(steps), Left: door.Left()}
	if refused := door.Err(); refused != nil {
		replayed.Error, replayed.Diverged = failureOf(refused), true
	} else if err != nil {
		replayed.Error = failureOf(err)
	}
	return replayed, nil
}
