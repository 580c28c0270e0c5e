package backup

import (
	"context"
	"io/fs"

	"github.com/luanette/luanette/internal/store/db"
)

// Schema is what the packages that own the tables provide.
type Schema struct {
	// Known is the migrations of all sets of tables.
	Known map[string]fs.FS
	// CreateTables creates the tables that have no migrations.
	CreateTables func(context.Context, *db.DB) error
	// Release changes a set of tables for a database that only one process uses.
	Release map[string]func(context.Context, *db.DB) error
	// RunningNodes returns the names of the nodes that use a database.
	RunningNodes func(context.Context, *db.DB) ([]string, error)
}
