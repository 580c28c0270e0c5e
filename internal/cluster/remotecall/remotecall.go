// Package remotecall runs a function on another node of the same database and returns
// its result: a request that reaches one node may concern a call that another node
// handles. A remote call is a row of a table until its caller stops waiting;
// notifications only tell the nodes when to read the table.
package remotecall

import (
	"context"
	"embed"
	"log/slog"
	"sync"

	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// topic is the notification channel of remote calls.
const topic = "errands"

// Handler handles a remote call. Mine is false if the call does not concern this node.
// Its ctx ends when the caller stops waiting.
type Handler func(ctx context.Context, body []byte) (answer []byte, mine bool)

// Options configure a Service.
type Options struct {
	Self  string                                               // id of this node
	Alive func(ctx context.Context, node string) (bool, error) // reports whether a node is alive
	Log   *slog.Logger                                         // nil discards
}

// Service sends remote calls and handles those of other nodes. It is safe for
// concurrent use.
type Service struct {
	db      *db.DB
	options Options

	mu      sync.Mutex
	waiting map[string]chan struct{}      // signalled when a call has its answer
	running map[string]context.CancelFunc // calls of other nodes that are being handled
}

// Open creates or updates the tables.
func Open(ctx context.Context, database *db.DB, o Options) (*Service, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	service := &Service{db: database, options: o, waiting: map[string]chan struct{}{}, running: map[string]context.CancelFunc{}}
	return service, database.Migrate(ctx, "errand", Migrations) // the name from before the package was called remotecall
}

// Self returns the id of this node.
func (s *Service) Self() string { return s.options.Self }

// The first words of notifications: a call for a node, a call that has its answer, and
// a call whose caller stopped waiting.
const (
	messageCall   = "for"
	messageDone   = "done"
	messageCancel = "off"
)
