package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// updateInterval is how often the progress of jobs is stored for other nodes. A job that
// ends sooner is not reported.
const updateInterval = time.Second / 2

// jobUpdate is the progress of a running job since it was last stored.
type jobUpdate struct {
	job       string
	fraction  float64
	message   string
	first     int // index of the first of lines
	lines     []host.OutputLine
	restarted bool // a new run began: earlier output is obsolete
}

// update returns what other nodes do not know yet; ok is false if there is nothing.
func (c *liveJob) update(id string) (a jobUpdate, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return a, false
	}
	a = jobUpdate{job: id, fraction: c.fraction, message: c.message, first: c.storedLines, lines: slices.Clone(c.lines[c.storedLines:]), restarted: c.restarted}
	c.changed, c.restarted, c.storedLines, c.stored = false, false, len(c.lines), true
	return a, true
}

// restore marks an update that could not be stored, so that it is stored again.
func (c *liveJob) restore(a jobUpdate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed, c.restarted = true, c.restarted || a.restarted
	c.storedLines = min(c.storedLines, a.first)
}

// storeUpdates stores the progress of this node's jobs for other nodes, until ctx ends.
func (q *Queue) storeUpdates(ctx context.Context) {
	for q.options.Clock.Sleep(ctx, updateInterval) == nil {
		if err := q.storeUpdatesOnce(ctx); err != nil && ctx.Err() == nil {
			q.options.Log.WarnContext(ctx, "progress of jobs not stored", "error", err)
		}
	}
}

func (q *Queue) storeUpdatesOnce(ctx context.Context) error {
	q.mu.Lock()
	running, ended := maps.Clone(q.current), q.endedLive
	q.endedLive = nil
	q.mu.Unlock()
	var updates []jobUpdate
	for id, c := range running {
		if a, ok := c.update(id); ok {
			updates = append(updates, a)
		}
	}
	if len(updates)+len(ended) == 0 {
		return nil
	}
	err := q.db.Write(ctx, func(tx *db.Tx) error {
		for _, a := range updates {
			if err := q.storeUpdate(ctx, tx, a); err != nil {
				return err
			}
		}
		return forgetLive(ctx, tx, ended)
	})
	if err != nil {
		for _, a := range updates {
			running[a.job].restore(a)
		}
		q.mu.Lock()
		q.endedLive = append(q.endedLive, ended...)
		q.mu.Unlock()
	}
	return err
}

// storeUpdate stores the progress of a job, if the job still belongs to this node.
func (q *Queue) storeUpdate(ctx context.Context, tx *db.Tx, a jobUpdate) error {
	var ours bool
	err := tx.QueryRow(ctx, "SELECT node = $2 AND finished = 0 FROM jobs WHERE id = $1", a.job, q.options.Node).Scan(&ours)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !ours {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO job_live (job, fraction, message) VALUES ($1, $2, $3)
		ON CONFLICT (job) DO UPDATE SET fraction = excluded.fraction, message = excluded.message`, a.job, a.fraction, a.message); err != nil {
		return err
	}
	if a.restarted {
		if _, err := tx.Exec(ctx, "DELETE FROM job_said WHERE job = $1", a.job); err != nil {
			return err
		}
	}
	if len(a.lines) == 0 {
		return nil
	}
	lines, err := json.Marshal(a.lines)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO job_said (job, first, lines) VALUES ($1, $2, $3) ON CONFLICT (job, first) DO UPDATE SET lines = excluded.lines",
		a.job, a.first, lines)
	return err
}

// forgetLive removes the stored progress and output of jobs that have ended.
func forgetLive(ctx context.Context, tx *db.Tx, jobs []string) error {
	for _, id := range jobs {
		for _, table := range []string{"job_live", "job_said"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE job = $1", id); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlayOther adds the progress and output of another node's job.
func (q *Queue) overlayOther(ctx context.Context, j *Job) error {
	return q.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, "SELECT fraction, message FROM job_live WHERE job = $1", j.ID).Scan(&j.Progress, &j.Message)
		if err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		}
		parts, err := db.All(ctx, tx, func(row db.Scanner) (lines []host.OutputLine, err error) {
			var raw []byte
			if err := row.Scan(&raw); err != nil {
				return nil, err
			}
			return lines, json.Unmarshal(raw, &lines)
		}, "SELECT lines FROM job_said WHERE job = $1 ORDER BY first", j.ID)
		j.Output = slices.Concat(parts...)
		return err
	})
}

// overlayOthers adds the progress of other nodes' jobs.
func (q *Queue) overlayOthers(ctx context.Context, jobs []*Job) error {
	if len(jobs) == 0 {
		return nil
	}
	return q.db.Read(ctx, func(tx *db.Tx) error {
		far := map[string]Job{}
		_, err := db.All(ctx, tx, func(row db.Scanner) (j Job, err error) {
			err = row.Scan(&j.ID, &j.Progress, &j.Message)
			far[j.ID] = j
			return j, err
		}, "SELECT job, fraction, message FROM job_live")
		for _, j := range jobs {
			if at, ok := far[j.ID]; ok {
				j.Progress, j.Message = at.Progress, at.Message
			}
		}
		return err
	})
}
