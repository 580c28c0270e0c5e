// Package results stores results that are too large to show, for a limited time under a
// short handle that scripts and models can use, and learns the shapes of results of
// tools that declare no output schema.
package results

import (
	"context"
	"embed"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options configure a store. Zero fields mean the default beside them.
type Options struct {
	Count int           // stored results per user: 100
	Bytes int64         // of all results of a user: 64 MiB
	Age   time.Duration // without being read, before deletion: 24 hours
	Tools int           // whose shapes are stored: 2,000
	Clock clock.Clock   // the system clock
	Log   *slog.Logger  // discards
	Flow  Flow          // follows no labels
}

// Flow remembers the data-flow labels of stored results.
type Flow interface {
	Recall(ctx context.Context, name string) error
	Remember(ctx context.Context, name string) error
}

func (o Options) orDefault() Options {
	if o.Count == 0 {
		o.Count = 100
	}
	if o.Bytes == 0 {
		o.Bytes = 64 << 20
	}
	if o.Age == 0 {
		o.Age = 24 * time.Hour
	}
	if o.Tools == 0 {
		o.Tools = 2000
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store holds results and shapes. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options
	learned learnedShapes
}

// Open opens the store in a database and migrates its tables. Close waits until all
// learned shapes are written.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if err := database.Migrate(ctx, "results", Migrations); err != nil {
		return nil, err
	}
	s := &Store{db: database, options: o.orDefault()}
	return s, s.load(ctx)
}
