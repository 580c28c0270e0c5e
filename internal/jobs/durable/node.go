package durable

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// ErrTakenOver means that another node continues a run that this one started,
// because this node was considered dead. Nothing more is recorded here, so the work
// must stop.
var ErrTakenOver = fault.New(fault.Cancelled, "another node has taken the run over")

// queue is where runs wait that this node takes over. Each node has its own queue,
// so that a run continues on the node that was chosen for it.
func (e *Engine) queue() string { return queuePrefix + e.node }

const (
	queuePrefix  = "node-"
	pollInterval = 100 * time.Millisecond

	// returnInterval is how often a run that was taken over looks whether it is back. Resume
	// signals that at once; a run that two nodes move at the same moment may miss it.
	returnInterval = 10 * time.Second
)

// listenQueue starts to poll this node's queue, and no other.
func (e *Engine) listenQueue() error {
	if e.external.Postgres == nil {
		return nil
	}
	dbos.ListenQueues(e.dbos, e.queue())
	return e.RegisterQueue()
}

// RegisterQueue creates this node's queue, which other nodes have removed if they
// considered this node dead.
func (e *Engine) RegisterQueue() error {
	if e.external.Postgres == nil {
		return nil
	}
	if _, err := dbos.RegisterQueue(e.dbos, e.queue(), dbos.WithQueueBasePollingInterval(pollInterval)); err != nil {
		return fault.Wrap(fault.Internal, err, "register the queue of node %s", e.node)
	}
	return nil
}

// Resume continues a run on this node that another node did not finish, or never
// started.
func (e *Engine) Resume(ctx context.Context, id string) error {
	// A run that this node starts now, or has already, is not queued: it would come back from
	// the queue, and repeat the steps that it made meanwhile.
	now, err := e.holder(ctx, id)
	if err != nil || now == thisNode && e.Running(id) {
		return err
	}
	if err := e.Start(id); err != nil || now == nobody {
		return err
	}
	// A node that considered this one dead may have removed the queue after this node
	// registered it again.
	if err := e.RegisterQueue(); err != nil {
		return err
	}
	if _, err := dbos.ResumeWorkflow[[]byte](e.dbos, id, dbos.WithResumeQueue(e.queue())); err != nil {
		return fault.Wrap(fault.Internal, err, "resume run %s", id)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case e.returns[id] <- struct{}{}:
	default: // DBOS has not started it here and will, or it is signalled already
	}
	return nil
}

// expectReturn makes the channel that Resume signals when the run comes back to this
// node. It is signalled from the beginning: Resume starts a run that is unknown here, and
// may have come back before this run made the channel.
func (e *Engine) expectReturn(id string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	returned := make(chan struct{}, 1)
	returned <- struct{}{}
	e.returns[id] = returned
	return returned
}

func (e *Engine) forgetReturn(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.returns, id)
}

// awaitReturn waits until a run that was taken over belongs to this node again. It
// is false when the engine closes.
func (e *Engine) awaitReturn(inner dbos.Context, id string, returned <-chan struct{}) bool {
	if e.external.Postgres == nil { // nobody takes over: the engine closes
		<-inner.Done()
		return false
	}
	for {
		select {
		case <-returned:
		case <-time.After(returnInterval):
		case <-inner.Done():
			return false
		}
		for queued := true; queued; {
			now, err := e.holder(inner, id)
			if now == thisNode {
				return true
			}
			queued = now == thisQueue || err != nil
			select {
			case <-time.After(pollInterval):
			case <-inner.Done():
				return false
			}
		}
	}
}

// RemoveNode removes the queue of a dead node.
func (e *Engine) RemoveNode(node string) error {
	if err := dbos.DeleteQueue(e.dbos, queuePrefix+node); err != nil {
		return fault.Wrap(fault.Internal, err, "remove the queue of node %s", node)
	}
	return nil
}

// Running tells whether a run is active on this node.
func (e *Engine) Running(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active[id] != nil
}

// Active lists the runs that are active on this node.
func (e *Engine) Active() (ids []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.active {
		ids = append(ids, id)
	}
	return ids
}

// recordTimeout bounds one attempt to write a record: a dead connection may not
// return an error by itself.
const recordTimeout = 30 * time.Second

// recordShared is Record where nodes share the database. It retries while the
// database is unreachable, as long as the run lasts.
func (r *Run) recordShared(data []byte) error {
	text, err := serializer{}.Encode(data)
	if err != nil {
		return err
	}
	for {
		err := r.tryRecord(*text)
		if err == nil {
			r.next++
			return nil
		}
		if errors.Is(err, ErrTakenOver) {
			return err
		}
		if !r.delayed.Swap(true) {
			r.engine.log.Warn("database unreachable, recording the step again", "run", r.ID, "error", err)
		}
		select {
		case <-time.After(pollInterval):
		case <-r.inner.Done():
			return fault.Wrap(fault.Internal, err, "record a step of run %s", r.ID)
		}
	}
}

func (r *Run) tryRecord(text string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.inner), recordTimeout)
	defer cancel()
	return r.insertRecord(ctx, text)
}

// Delayed tells whether a record had to wait for an unreachable database since the
// last call.
func (r *Run) Delayed() bool { return r.delayed.Swap(false) }

// This file holds every statement that reads or writes DBOS's own tables. They are
// private to DBOS and may change with any version, so each statement says why the
// public API is not enough. TestTablesOfDBOS fails when an upgrade changes the
// columns; check every statement here before you adapt it.

// The tables and the columns that the statements below use.
const (
	statusTable = "workflow_status"   // workflow_uuid, status, executor_id, queue_name
	outputTable = "operation_outputs" // workflow_uuid, function_id, output, function_name, started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name
)

// applicationName is stored by DBOS with every workflow and step.
const applicationName = "luanette"

// soleNode is the executor of a process that has the database to itself.
const soleNode = "alone"

// table is the qualified name of one of DBOS's tables on Postgres.
func (e *Engine) table(name string) string {
	return `"` + strings.ReplaceAll(e.external.Schema, `"`, `""`) + `".` + name
}

// insertRecord writes the row that a step of DBOS would write, on Postgres. Three
// things need it:
//
//   - Fencing: the row is written only while this node is the run's executor. The
//     share lock on the run's row prevents a takeover until the record is committed.
//     DBOS checks the executor when a run starts, not when a step is recorded.
//   - One round trip instead of five.
//   - A retry after a lost connection. DBOS fails the run instead.
//
// A record that exists already with the same content is this one: the answer to an
// earlier attempt was lost. With other content, another node has written it.
func (r *Run) insertRecord(ctx context.Context, text string) error {
	e := r.engine
	now := time.Now().UnixMilli()
	done, err := e.external.Postgres.Exec(ctx, `WITH mine AS (SELECT 1 FROM `+e.table(statusTable)+` WHERE workflow_uuid = $1 AND executor_id = $2 FOR SHARE)
		INSERT INTO `+e.table(outputTable)+` (workflow_uuid, function_id, output, function_name, started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name)
		SELECT $1, $3, $4, 'record', $5, $5, $6, '`+applicationName+`' FROM mine ON CONFLICT (workflow_uuid, function_id) DO NOTHING`,
		r.ID, e.node, r.next, text, now, serializer{}.Name())
	if err != nil || done.RowsAffected() == 1 {
		return err
	}
	var same int
	err = e.external.Postgres.QueryRow(ctx, `SELECT count(*) FROM `+e.table(outputTable)+` WHERE workflow_uuid = $1 AND function_id = $2 AND output = $3`,
		r.ID, r.next, text).Scan(&same)
	if err == nil && same == 0 {
		err = ErrTakenOver
	}
	return err
}

// holder is who has a run that is not over.
type holder int

const (
	nobody    holder = iota // it was never started
	another                 // another node, or it is over
	thisQueue               // it waits for this node
	thisNode
)

// holder tells who has a run. It is a statement of its own because DBOS's ListWorkflows
// reads inputs and outputs too, and this is polled while a run is being handed over.
func (e *Engine) holder(ctx context.Context, id string) (holder, error) {
	var status, node, queue string
	err := e.external.Postgres.QueryRow(ctx, `SELECT COALESCE(MAX(status), ''), COALESCE(MAX(executor_id), ''), COALESCE(MAX(queue_name), '') FROM `+e.table(statusTable)+` WHERE workflow_uuid = $1`, id).
		Scan(&status, &node, &queue)
	switch {
	case err != nil:
		return another, fault.Wrap(fault.Internal, err, "read who has run %s", id)
	case status == "":
		return nobody, nil
	case status == string(dbos.WorkflowStatusEnqueued) && queue == e.queue():
		return thisQueue, nil
	case status == string(dbos.WorkflowStatusPending) && node == e.node:
		return thisNode, nil
	}
	return another, nil
}

// ReleaseRuns assigns the unfinished runs of a SQLite file to the process that opens
// it next, whichever node started them. A restored backup needs it. DBOS cannot
// change the executor of a workflow without starting it.
func ReleaseRuns(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE `+statusTable+` SET executor_id = $1, queue_name = NULL, status = $2 WHERE status IN ($2, $3)`,
		soleNode, string(dbos.WorkflowStatusPending), string(dbos.WorkflowStatusEnqueued))
	return err
}

// CreateTables creates DBOS's tables without starting a run.
func CreateTables(ctx context.Context, database *db.DB) error {
	e, err := Open(ctx, database, nil, Options{})
	if err != nil {
		return err
	}
	return e.Close()
}
