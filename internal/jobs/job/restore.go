package job

import (
	"context"

	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db"
)

// ReleaseJobs makes the jobs of a file that are not over nobody's, so that the one
// process that uses it goes on with them, whichever node of another database had
// them before.
func ReleaseJobs(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE jobs SET node = '' WHERE finished = 0"); err != nil {
			return err
		}
		return durable.ReleaseRuns(ctx, tx)
	})
}

// CreateTables makes the tables that are not this package's own: the engine's.
func CreateTables(ctx context.Context, d *db.DB) error { return durable.CreateTables(ctx, d) }
