package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
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
	for _, tag := range j.Tags {
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO job_tags (tag, job) VALUES ($1, $2)", tag, j.ID)
		}
	}
	return err
}

// load reads one job, with its output.
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
		_, err = tx.Exec(ctx, "UPDATE jobs SET output = $2, tail = $3 WHERE id = $1 AND node = $4", j.ID, output, tail, q.options.Node)
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
		result, err := tx.Exec(ctx, "UPDATE jobs SET state = 'cancelled', finished = $2 WHERE id = $1 AND finished = 0", id, at.UnixMicro())
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
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
