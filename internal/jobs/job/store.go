package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// columns are the columns of a job that scan reads; the output is read on request.
const columns = "id, state, name, hash, source, params, creator, tags, priority, created, due, started, finished, result, error, schedule, origin, trace_id, language, coalesce((SELECT asker FROM job_owners WHERE job_owners.id = jobs.id), '')"

func scan(row db.Scanner, more ...any) (j Job, err error) {
	var tags, asker string
	var created, due, started, finished int64
	var params, result, failure []byte
	into := append([]any{
		&j.ID, &j.State, &j.Name, &j.Hash, &j.Source, &params, &j.Creator, &tags, &j.Priority,
		&created, &due, &started, &finished, &result, &failure, &j.Schedule, &j.origin, &j.TraceID, &j.Language, &asker,
	}, more...)
	if err := row.Scan(into...); err != nil {
		return j, err
	}
	j.Params, j.Result = params, result
	j.Created, j.Due, j.Started, j.Finished = timeOf(created), timeOf(due), timeOf(started), timeOf(finished)
	if j.State == Complete {
		j.Progress = 1
	}
	if len(failure) > 0 {
		if err := json.Unmarshal(failure, &j.Error); err != nil {
			return j, fmt.Errorf("read the error of job %s: %w", j.ID, err)
		}
	}
	who, err := ownerOf(asker)
	if err != nil {
		return j, err
	}
	j.owner, j.ownerName, j.By = who.Owner(), who.Name, who.Client
	return j, json.Unmarshal([]byte(tags), &j.Tags)
}

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}

func (q *Queue) insertJob(ctx context.Context, tx *db.Tx, j Job) error {
	tags, err := json.Marshal(append([]string{}, j.Tags...))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO jobs (id, state, name, hash, source, params, creator, tags, priority, created, due, schedule, node, origin, trace_id, language)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		j.ID, j.State, j.Name, j.Hash, j.Source, []byte(j.Params), j.Creator, string(tags), j.Priority, j.Created.UnixMicro(), j.Due.UnixMicro(), j.Schedule, q.options.Node, j.origin, j.TraceID, j.Language)
	if err == nil {
		err = storeOwner(ctx, tx, j.ID)
	}
	if err == nil && q.options.Admit != nil { // after the row: a job that exists is not counted again
		err = q.options.Admit(ctx, tx)
	}
	if err == nil && j.journal != nil {
		_, err = tx.Exec(ctx, "UPDATE jobs SET tail = $2 WHERE id = $1", j.ID, j.journal)
	}
	if err == nil && j.continues != "" {
		err = copyFiles(ctx, tx, j.continues, j.ID)
	}
	for _, tag := range j.Tags {
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO job_tags (tag, job) VALUES ($1, $2)", tag, j.ID)
		}
	}
	return err
}

// load reads one job, with its output and the part of its journal that is stored with it: of
// one that has ended the end, of another that continues a job what that has done.
func (q *Queue) load(ctx context.Context, id string) (j Job, tail []byte, err error) {
	var output []byte
	err = q.db.Read(ctx, func(tx *db.Tx) (err error) {
		j, err = scan(tx.QueryRow(ctx, "SELECT "+columns+", output, tail FROM jobs WHERE id = $1", id), &output, &tail)
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return j, nil, unknown(id)
	case err != nil:
		return j, nil, fmt.Errorf("load job %s: %w", id, err)
	}
	if len(output) > 0 {
		err = json.Unmarshal(output, &j.Output)
	}
	return j, tail, err
}

func unknown(ids ...string) error {
	return fault.New(fault.NotFound, "no job %s", strings.Join(ids, ", ")).
		WithHint("job_list lists the jobs; finished ones are removed after a while")
}

// begin stores that a job runs. attempts is the number of starts since its journal
// last grew.
func (q *Queue) begin(ctx context.Context, j Job, at time.Time, records int) (attempts int, err error) {
	trace := q.traceID(ctx, j)
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `UPDATE jobs SET state = 'running', started = CASE WHEN started = 0 THEN $2 ELSE started END,
			attempts = CASE WHEN $3 > steps THEN 1 ELSE attempts + 1 END, steps = $3, trace_id = $5
			WHERE id = $1 AND finished = 0 AND node = $4 RETURNING attempts`, j.ID, at.UnixMicro(), records, q.options.Node, trace).Scan(&attempts)
	})
	return attempts, err
}

// end stores how a job ended. If it was cancelled meanwhile, only its output and
// journal are stored. The job is returned as stored.
func (q *Queue) end(ctx context.Context, j Job, tail []byte) (stored Job, err error) {
	failure, output, err := encoded(j.Error, j.Output)
	if err != nil {
		return j, err
	}
	lines := j.Output
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE jobs SET state = $2, finished = $3, result = $4, error = $5
			WHERE id = $1 AND finished = 0 AND node = $6`, j.ID, j.State, j.Finished.UnixMicro(), []byte(j.Result), failure, q.options.Node)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE jobs SET output = $2, tail = $3 WHERE id = $1 AND node = $4", j.ID, output, slices.Concat(j.journal, tail), q.options.Node)
		if err != nil {
			return err
		}
		var node string
		stored, err = scan(tx.QueryRow(ctx, "SELECT "+columns+", node FROM jobs WHERE id = $1", j.ID), &node)
		if err == nil && node != q.options.Node {
			return durable.ErrTakenOver
		}
		stored.Output = lines
		return errors.Join(err, tx.Notify(topic, j.ID))
	})
	return stored, err
}

func encoded(failure *Failure, lines []host.OutputLine) (f, o []byte, err error) {
	if failure != nil {
		if f, err = json.Marshal(failure); err != nil {
			return nil, nil, err
		}
	}
	if len(lines) > 0 {
		o, err = json.Marshal(lines)
	}
	return f, o, err
}

// revoke stores that a job was cancelled, unless it has ended.
func (q *Queue) revoke(ctx context.Context, id string, at time.Time) (done bool, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE jobs SET state = 'cancelled', finished = $2 WHERE id = $1 AND finished = 0", id, at.UnixMicro())
		if done = n > 0; err != nil || !done {
			return err
		}
		return tx.Notify(topic, id)
	})
	return done, err
}

// unfinished makes jobs that a dead process was running pending again, and returns all
// unfinished jobs, the oldest first.
func (q *Queue) unfinished(ctx context.Context) (jobs []Job, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE jobs SET state = 'pending' WHERE state IN ('running', 'waiting')"); err != nil {
			return err
		}
		jobs, err = db.All(ctx, tx, func(row db.Scanner) (Job, error) { return scan(row) },
			"SELECT "+columns+" FROM jobs WHERE state = 'pending' ORDER BY created, id")
		return err
	})
	return jobs, err
}

// tidy removes old jobs periodically.
func (q *Queue) tidy(ctx context.Context) {
	every := min(q.options.KeepComplete, q.options.KeepFailed, time.Minute)
	for q.options.Clock.Sleep(ctx, every) == nil {
		if err := q.sweep(ctx); err != nil && ctx.Err() == nil {
			q.options.Log.WarnContext(ctx, "old jobs not removed", "error", err)
		}
	}
}

// sweep removes ended jobs that are too old or too many, and their journals.
func (q *Queue) sweep(ctx context.Context) error {
	now := q.options.Clock.Now()
	for _, find := range []struct {
		query string
		args  []any
	}{
		{expired, []any{now.Add(-q.options.KeepComplete).UnixMicro(), now.Add(-q.options.KeepFailed).UnixMicro()}},
		{surplusOfSchedules, []any{q.options.KeepScheduled}},
		{surplus, []any{q.options.KeepCount}},
	} {
		if err := q.removeAll(ctx, find.query, find.args...); err != nil {
			return err
		}
	}
	return q.removeKeys(ctx)
}

// What sweep removes, at most 1000 jobs at a time.
const (
	expired = `SELECT id FROM jobs WHERE finished > 0 AND (state = 'complete' AND finished < $1 OR state <> 'complete' AND finished < $2)
		ORDER BY finished LIMIT 1000`
	surplusOfSchedules = `SELECT id FROM (
			SELECT id, row_number() OVER (PARTITION BY schedule ORDER BY finished DESC, id DESC) AS place FROM jobs WHERE finished > 0 AND schedule <> ''
		) AS ranked WHERE place > $1 LIMIT 1000`
	surplus = `SELECT id FROM jobs WHERE finished > 0 ORDER BY finished DESC, id DESC LIMIT 1000 OFFSET $1`
)

// removeAll removes the jobs that a query finds, until it finds none.
func (q *Queue) removeAll(ctx context.Context, query string, args ...any) error {
	for {
		var ids []string
		err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			ids, err = db.All(ctx, tx, db.Column[string], query, args...)
			return err
		})
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

func (q *Queue) remove(ctx context.Context, ids []string) error {
	return q.db.Write(ctx, func(tx *db.Tx) error {
		for _, id := range ids {
			if _, err := tx.Exec(ctx, "DELETE FROM jobs WHERE id = $1", id); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "DELETE FROM job_owners WHERE id = $1", id); err != nil {
				return err
			}
		}
		if q.options.Node == "" {
			return nil
		}
		return forgetLive(ctx, tx, ids) // left by nodes that died
	})
}

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

// ReleaseJobs removes the node of unfinished jobs in a SQLite file, so that the process
// that opens it continues them, whichever node of another database had them before.
func ReleaseJobs(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE jobs SET node = '' WHERE finished = 0"); err != nil {
			return err
		}
		return durable.ReleaseRuns(ctx, tx)
	})
}

// CreateTables creates the tables of the workflow engine.
func CreateTables(ctx context.Context, d *db.DB) error { return durable.CreateTables(ctx, d) }
