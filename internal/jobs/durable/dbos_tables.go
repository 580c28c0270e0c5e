package durable

import (
	"context"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/luanette/luanette/internal/store/db"
)

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

// ownership tells whether a run is this node's, or is queued for it. It is a
// statement of its own because DBOS's ListWorkflows reads inputs and outputs too,
// and this is polled while a run is being handed over.
func (e *Engine) ownership(ctx context.Context, id string) (mine, queued bool) {
	var status, node, queue string
	err := e.external.Postgres.QueryRow(ctx, `SELECT COALESCE(MAX(status), ''), COALESCE(MAX(executor_id), ''), COALESCE(MAX(queue_name), '') FROM `+e.table(statusTable)+` WHERE workflow_uuid = $1`, id).
		Scan(&status, &node, &queue)
	switch {
	case err != nil:
		return false, true // poll again
	case status == string(dbos.WorkflowStatusEnqueued):
		return false, queue == e.queue()
	}
	return status == string(dbos.WorkflowStatusPending) && node == e.node, false
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
