package job

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Journals are the journals of people's jobs, which are not rows of our tables, and the jobs
// that run.
type Journals struct{ Queue *Queue }

// ofPerson returns the ids of a person's jobs.
func (j Journals) ofPerson(ctx context.Context, p personal.Person) (ids []string, err error) {
	jobs := personal.Table{Name: "jobs", Where: ownedJobs}
	err = j.Queue.db.Read(ctx, func(tx *db.Tx) error {
		ids = nil
		return jobs.Export(ctx, tx, p, func(row personal.Row) error {
			if id, ok := row.Values["id"].(string); ok {
				ids = append(ids, id)
			}
			return nil
		})
	})
	return ids, err
}

// Export writes the journals of a person's jobs.
func (j Journals) Export(ctx context.Context, p personal.Person, write func(kind string, value any) error) error {
	ids, err := j.ofPerson(ctx, p)
	if err != nil {
		return err
	}
	ctx = principal.With(ctx, principal.Local())
	for _, id := range ids {
		steps, err := j.Queue.Journal(ctx, id)
		if fault.CodeOf(err) == fault.NotFound {
			continue // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		if err := write("journal", map[string]any{"job": id, "steps": steps}); err != nil {
			return err
		}
	}
	return nil
}

// Erase cancels the jobs of a person and deletes their journals and files. The rows are
// deleted afterwards.
func (j Journals) Erase(ctx context.Context, p personal.Person) error {
	ids, err := j.ofPerson(ctx, p)
	if err != nil {
		return err
	}
	ctx = principal.With(ctx, principal.Local())
	for _, id := range ids {
		if _, err := j.Queue.Cancel(ctx, id); err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, j.Queue.options.Grace)
		j.Queue.engine.AwaitEnd(waiting, id)
		cancel()
		if err := j.Queue.engine.Forget(id); err != nil {
			return err
		}
		j.Queue.clean(id)
	}
	return nil
}
