package durable

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/luanette/luanette/internal/fault"
)

// ErrTaken means that another node goes on with a run that this one began: it was
// taken for dead. Nothing more is recorded here, so nothing more may be done.
var ErrTaken = fault.New(fault.Cancelled, "another node has taken the run over")

// queue is where runs wait that a node takes over. Each node has its own, so that
// the one that was told to go on with a run is the one that does.
func (e *Engine) queue() string { return queuePrefix + e.node }

const (
	queuePrefix = "node-"
	queueTime   = 100 * time.Millisecond // between looks
)

// attend begins to look at this node's queue, and at no other's.
func (e *Engine) attend() error {
	if e.guests.Postgres == nil {
		return nil
	}
	dbos.ListenQueues(e.dbos, e.queue())
	_, err := dbos.RegisterQueue(e.dbos, e.queue(), dbos.WithQueueBasePollingInterval(queueTime))
	return err
}

// Resume has a run go on here that another node began and did not finish, or never
// began.
func (e *Engine) Resume(id string) error {
	if err := e.Start(id); err != nil {
		return err
	}
	if _, err := dbos.ResumeWorkflow[[]byte](e.dbos, id, dbos.WithResumeQueue(e.queue())); err != nil {
		return fault.Wrap(fault.Internal, err, "go on with run %s", id)
	}
	return nil
}

// Bury forgets what was kept for a node that is gone.
func (e *Engine) Bury(node string) error {
	if err := dbos.DeleteQueue(e.dbos, queuePrefix+node); err != nil {
		return fault.Wrap(fault.Internal, err, "forget node %s", node)
	}
	return nil
}

// Running tells whether a run is under way here.
func (e *Engine) Running(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active[id] != nil
}

// Active are the runs under way here.
func (e *Engine) Active() (ids []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.active {
		ids = append(ids, id)
	}
	return ids
}

// ours refuses a record of a run that is another node's by now. The row is held
// until the record is on disk: nobody takes the run over in between.
func (e *Engine) ours(ctx context.Context, tx dbos.Tx, id string) error {
	if e.guests.Postgres == nil { // alone on its database
		return nil
	}
	var node string
	schema := strings.ReplaceAll(e.guests.Schema, `"`, `""`)
	err := tx.QueryRow(ctx, `SELECT executor_id FROM "`+schema+`".workflow_status WHERE workflow_uuid = $1 FOR SHARE`, id).Scan(&node)
	if err == nil && node != e.node {
		err = ErrTaken
	}
	return err
}

// isTaken tells whether a run was taken over, by what DBOS made of the error.
func isTaken(err error) bool { return errors.Is(err, ErrTaken) }
