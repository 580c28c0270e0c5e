// Package results is what we remember of what tools answered: the shapes of
// results whose tools do not tell them, and results too big to be shown, which
// are kept for a while under a short name that scripts and models can use.
package results

import (
	"context"
	"embed"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Options are the choices of a store. Zero fields mean the default beside them.
type Options struct {
	Count int           // results kept per user: 100
	Bytes int64         // of them together: 64 MiB
	Age   time.Duration // without being read: 24 hours
	Tools int           // whose shapes are kept: 2,000
	Clock clock.Clock   // the machine's
	Log   *slog.Logger  // silent
	Flow  Flow          // nothing
}

// Flow follows what results were made of.
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

// Store keeps results. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options
	learned learnedShapes
}

// Open finds what is in the database, whose tables it brings up to date. Close
// writes down what was learned last.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if err := database.Migrate(ctx, "results", migrations); err != nil {
		return nil, err
	}
	s := &Store{db: database, options: o.orDefault()}
	return s, s.load(ctx)
}
