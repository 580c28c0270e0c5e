package job

import (
	"context"

	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db"
)

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
