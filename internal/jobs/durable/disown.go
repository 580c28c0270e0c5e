package durable

import (
	"context"

	"github.com/luanette/luanette/internal/store/db"
)

// alone is the node of a program that is alone on its database.
const alone = "alone"

// ReleaseJobs makes the runs in a file that are not over those of a program that is
// alone on it, whichever node of another database had begun them.
func ReleaseRuns(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE workflow_status SET executor_id = $1, queue_name = NULL, status = 'PENDING' WHERE status IN ('PENDING', 'ENQUEUED')`, alone)
	return err
}

// CreateTables makes the engine's tables.
func CreateTables(ctx context.Context, database *db.DB) error {
	e, err := Open(ctx, database, nil, Options{})
	if err != nil {
		return err
	}
	return e.Close()
}
