package durable

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/luanette/luanette/internal/base/fault"
)

// ErrTakenOver means that another node goes on with a run that this one began: it was
// taken for dead. Nothing more is recorded here, so nothing more may be done.
var ErrTakenOver = fault.New(fault.Cancelled, "another node has taken the run over")

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
	return e.RegisterQueue()
}

// RegisterQueue makes this node's queue, which others have forgotten if they took the node
// for dead.
func (e *Engine) RegisterQueue() error {
	if e.guests.Postgres == nil {
		return nil
	}
	if _, err := dbos.RegisterQueue(e.dbos, e.queue(), dbos.WithQueueBasePollingInterval(queueTime)); err != nil {
		return fault.Wrap(fault.Internal, err, "make the queue of node %s", e.node)
	}
	return nil
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
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case e.places[id] <- struct{}{}:
	default: // it has none, and DBOS begins it; or it was told
	}
	return nil
}

// open makes a run's place.
func (e *Engine) open(id string) (back <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	place := make(chan struct{}, 1)
	e.places[id] = place
	return place
}

func (e *Engine) shut(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.places, id)
}

// comesBack waits until a run that was taken away is this node's again. It is false
// when the engine closes.
func (e *Engine) comesBack(inner dbos.Context, id string, back <-chan struct{}) bool {
	for {
		select {
		case <-back:
		case <-inner.Done():
			return false
		}
		for coming := true; coming; {
			var mine bool
			if mine, coming = e.handed(inner, id); mine {
				return true
			}
			select {
			case <-time.After(queueTime):
			case <-inner.Done():
				return false
			}
		}
	}
}

// handed tells whether a run is this node's, or about to be.
func (e *Engine) handed(ctx context.Context, id string) (mine, coming bool) {
	var status, node, queue string
	err := e.guests.Postgres.QueryRow(ctx, `SELECT COALESCE(MAX(status), ''), COALESCE(MAX(executor_id), ''), COALESCE(MAX(queue_name), '') FROM `+e.table("workflow_status")+` WHERE workflow_uuid = $1`, id).
		Scan(&status, &node, &queue)
	switch {
	case err != nil:
		return false, true // it is looked at again
	case status == string(dbos.WorkflowStatusEnqueued):
		return false, queue == e.queue()
	}
	return status == string(dbos.WorkflowStatusPending) && node == e.node, false
}

// table is one of DBOS's.
func (e *Engine) table(name string) string {
	return `"` + strings.ReplaceAll(e.guests.Schema, `"`, `""`) + `".` + name
}

// RemoveNode forgets what was kept for a node that is gone.
func (e *Engine) RemoveNode(node string) error {
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

// recordTime is how long one try to record something may take: a connection may be
// dead without telling.
const recordTime = 30 * time.Second

// recordShared is Record where nodes share the database. It writes the row that
// DBOS's own step would, in one statement and only while the run is this node's:
// DBOS has no way to say the latter, takes five round trips, and gives up when the
// connection breaks in the middle of them. It waits for a database that is away as
// long as the run lasts.
func (r *Run) recordShared(data []byte) error {
	text, err := octets{}.Encode(data)
	if err != nil {
		return err
	}
	for {
		err := r.insert(*text)
		if err == nil {
			r.next++
			return nil
		}
		if errors.Is(err, ErrTakenOver) {
			return err
		}
		if !r.delayed.Swap(true) {
			r.engine.log.Warn("the database is away, trying to record a step again", "run", r.ID, "error", err)
		}
		select {
		case <-time.After(queueTime):
		case <-r.inner.Done():
			return fault.Wrap(fault.Internal, err, "record a step of run %s", r.ID)
		}
	}
}

// Delayed tells whether a record had to wait for a database that was away, since it
// was last asked.
func (r *Run) Delayed() bool { return r.delayed.Swap(false) }

// insert writes the next record. The run's row is held until it is on disk: nobody
// takes the run over in between. A record that is there already is this one when it
// says the same: its acknowledgement was lost.
func (r *Run) insert(text string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.inner), recordTime)
	defer cancel()
	e := r.engine
	now := time.Now().UnixMilli()
	done, err := e.guests.Postgres.Exec(ctx, `WITH mine AS (SELECT 1 FROM `+e.table("workflow_status")+` WHERE workflow_uuid = $1 AND executor_id = $2 FOR SHARE)
		INSERT INTO `+e.table("operation_outputs")+` (workflow_uuid, function_id, output, function_name, started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name)
		SELECT $1, $3, $4, 'record', $5, $5, $6, 'luanette' FROM mine ON CONFLICT (workflow_uuid, function_id) DO NOTHING`,
		r.ID, e.node, r.next, text, now, octets{}.Name())
	if err != nil || done.RowsAffected() == 1 {
		return err
	}
	var same int
	err = e.guests.Postgres.QueryRow(ctx, `SELECT count(*) FROM `+e.table("operation_outputs")+` WHERE workflow_uuid = $1 AND function_id = $2 AND output = $3`,
		r.ID, r.next, text).Scan(&same)
	if err == nil && same == 0 {
		err = ErrTakenOver
	}
	return err
}
