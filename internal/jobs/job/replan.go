package job

import (
	"context"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
)

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
	rehearsal := host.NewRehearsal(q.options.Tools, nil)
	_, err = q.runner.RunJob(ctx, Task{
		ID: id, Spec: j.Spec, Handler: host.NewReplay(withoutRefusals(steps), rehearsal), Offline: true,
		Progress: func(float64, string) {}, Watch: func(host.OutputLine) {},
	})
	return host.NewPlan(rehearsal, err), nil
}
