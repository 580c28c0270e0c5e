package conversation

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/store/db"
)

// moveUsage moves what earlier versions counted here to package spending.
func moveUsage(ctx context.Context, database *db.DB) error {
	if err := spending.Migrate(ctx, database); err != nil {
		return err
	}
	err := database.Write(ctx, func(tx *db.Tx) error {
		old, err := db.All(ctx, tx, func(row db.Scanner) (d spending.PersonDay, err error) {
			return d, row.Scan(&d.Org, &d.User, &d.Day, &d.Turns, &d.Input, &d.Output, &d.CacheRead, &d.CacheWrite, &d.Cost)
		}, `DELETE FROM talk_usage RETURNING org, person, day, turns, input, output, cache_read, cache_write, cost`)
		if err != nil {
			return err
		}
		for _, day := range old {
			if err := day.Add(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "move the usage of an earlier version")
	}
	return nil
}
