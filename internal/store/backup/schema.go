package backup

import (
	"context"
	"io/fs"
	"sync"

	"github.com/luanette/luanette/internal/store/db"
)

// Schema is what the packages that own the tables provide.
type Schema struct {
	// Known returns the migrations of all sets of tables.
	Known func(context.Context) (map[string]fs.FS, error)
	// CreateTables creates the tables that have no migrations.
	CreateTables func(context.Context, *db.DB) error
	// Release changes a set of tables for a database that only one process uses.
	Release map[string]func(context.Context, *db.DB) error
	// RunningNodes returns the names of the nodes that use a database.
	RunningNodes func(context.Context, *db.DB) ([]string, error)
}

// Once returns a function that collects migrations at most once with success: that takes
// seconds, and the result never changes.
func Once(collect func(context.Context) (map[string]fs.FS, error)) func(context.Context) (map[string]fs.FS, error) {
	var mu sync.Mutex
	var known map[string]fs.FS
	return func(ctx context.Context) (map[string]fs.FS, error) {
		mu.Lock()
		defer mu.Unlock()
		if known != nil {
			return known, nil
		}
		sets, err := collect(ctx)
		if err == nil {
			known = sets
		}
		return sets, err
	}
}
