package job

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db"
)

// Several nodes may run jobs of one database. A job belongs to the node that received
// it. If that node dies, another one takes the job over. Only the node in the job's
// row may store how the job ended, and the engine lets only one node write its journal.

// topic is the notification channel for jobs that have ended.
const topic = "jobs"

// Owners returns the nodes that have unfinished jobs.
func (q *Queue) Owners(ctx context.Context) (nodes []string, err error) {
	return db.Find(ctx, q.db, db.Column[string],
		"SELECT DISTINCT node FROM jobs WHERE finished = 0")
}

// TakeOver continues the unfinished jobs of dead nodes on this one.
func (q *Queue) TakeOver(ctx context.Context, dead []string) error {
	if q.writable() != nil {
		return nil //nolint:nilerr // another node takes them over
	}
	var failed []error
	for _, node := range dead {
		if node == q.options.Node {
			continue
		}
		ids, err := q.takeOwnership(ctx, node)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			q.options.Log.InfoContext(ctx, "continuing the jobs of a dead node", "count", len(ids))
			failed = append(failed, q.persist(ctx, q.engine.RegisterQueue))
		}
		for _, id := range ids {
			// A job that cannot be resumed now belongs to this node already: see Recheck.
			failed = append(failed, q.persist(ctx, func() error { return q.engine.Resume(ctx, id) }))
		}
		failed = append(failed, q.engine.RemoveNode(node))
	}
	return errors.Join(failed...)
}

// takeOwnership makes this node the owner of another node's jobs.
func (q *Queue) takeOwnership(ctx context.Context, node string) (ids []string, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		ids, err = db.All(ctx, tx, db.Column[string],
			`UPDATE jobs SET node = $1, state = 'pending' WHERE node = $2 AND finished = 0 RETURNING id`, q.options.Node, node)
		return err
	})
	slices.Sort(ids)
	return ids, err
}

// becomeOwner makes this node the owner of a job that the engine resumed here.
func (q *Queue) becomeOwner(ctx context.Context, j Job) error {
	if q.following(j.ID) == nil {
		q.enter(j, false)
	}
	if q.options.Node == "" {
		return nil
	}
	err := q.persist(ctx, func() error {
		return q.db.Write(ctx, func(tx *db.Tx) error {
			n, err := tx.Exec(ctx, "UPDATE jobs SET node = $2 WHERE id = $1 AND finished = 0", j.ID, q.options.Node)
			if err != nil || n > 0 {
				return err
			}
			return sql.ErrNoRows
		})
	})
	if errors.Is(err, sql.ErrNoRows) {
		return errCancelled
	}
	return err
}

// whyNotOwned returns why a job cannot start here: it has ended, or belongs to another node.
func (q *Queue) whyNotOwned(ctx context.Context, id string) error {
	if _, over, err := q.ownerNode(ctx, id); err != nil || !over {
		return durable.ErrTakenOver
	}
	return errCancelled
}

// Recheck stops the jobs of this node that other nodes have taken over.
func (q *Queue) Recheck(ctx context.Context) error {
	if err := q.engine.RegisterQueue(); err != nil {
		return err
	}
	for _, id := range q.engine.Active() {
		node, over, err := q.ownerNode(ctx, id)
		switch {
		case err != nil:
			return err
		case over:
			q.engine.Cancel(id, errCancelled)
		case node != q.options.Node:
			q.engine.Cancel(id, durable.ErrTakenOver)
		}
	}
	return nil
}

// ownerNode returns the node that owns a job, and whether the job has ended.
func (q *Queue) ownerNode(ctx context.Context, id string) (node string, over bool, err error) {
	err = q.db.QueryRow(ctx, "SELECT node, finished > 0 FROM jobs WHERE id = $1", id).Scan(&node, &over)
	if errors.Is(err, sql.ErrNoRows) {
		return "", true, nil
	}
	return node, over, err
}

// listen receives notifications of jobs that have ended. It wakes the callers that wait
// for them here, and stops jobs that were cancelled on another node.
func (q *Queue) listen(ctx context.Context) {
	_ = q.db.Listen(ctx, topic, func(n db.Notification) {
		if n.Missed {
			q.wake("")
			if err := q.Recheck(ctx); err != nil && ctx.Err() == nil {
				q.options.Log.WarnContext(ctx, "jobs of this node not checked", "error", err)
			}
			return
		}
		q.wake(n.Payload)
		if !q.engine.Running(n.Payload) {
			return
		}
		if j, _, err := q.load(ctx, n.Payload); err == nil && j.State == Cancelled {
			q.engine.Cancel(n.Payload, errCancelled)
		}
	})
}
