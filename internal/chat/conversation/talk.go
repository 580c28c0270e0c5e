// Package conversation keeps people's conversations with the agent: who they are, what
// they like, what was said, and the order of it. A message is on disk before it is
// accepted; a person's messages are answered one at a time in the order they came,
// those of different people side by side. Nothing about a turn depends on the
// client that asked still being there, or on a lock that could run out: a turn
// that a crash interrupted is made again at the next start, or by another node.
package conversation

import (
	"context"
	"embed"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Agent answers one message.
type Agent interface {
	Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error)
}

// Options are a room's choices. The zero value of each is sensible.
type Options struct {
	Servers Servers // that people and organisations may add; nil: none
	// Secrets keeps their tokens; without a key they can have none.
	Secrets  secret.Box
	Depth    int // messages of one person that may wait; zero means 50
	Parallel int // turns at a time; zero means 64
	Attempts int // of a turn that crashes keep interrupting; zero means 3
	// CurrentPrincipal is who somebody is now that sent a message earlier; its error is the
	// answer. Nil: they are who they were.
	CurrentPrincipal func(ctx context.Context, was principal.Principal) (principal.Principal, error)
	// Node is this process among several on one database; "" is alone on it. Its
	// messages are its own to answer; whoever knows that a node is gone calls Adopt.
	Node string
	// Broadcast has other nodes' Heard called; nil: there are none.
	Broadcast func(ctx context.Context, word string)
	// OnForget takes away what else is kept of a person's conversations when their
	// history goes; nil: nothing is.
	OnForget func(ctx context.Context, p Person) error
	Bus      *event.Bus
	Log      *slog.Logger
	Clock    clock.Clock
}

// Service is where conversations are kept. It is safe for concurrent use.
type Service struct {
	db      *db.DB
	agent   Agent
	options Options

	background context.Context // of turns: they outlive their requests
	stop       context.CancelFunc
	work       sync.WaitGroup
	places     chan struct{} // one per turn at a time

	resumed []*Turn // what was interrupted when the room was last left

	mu       sync.Mutex
	lines    map[Person]*line
	active   map[*Turn]context.CancelCauseFunc // whose agent is at work
	underWay int                               // turns that have begun
	settled  chan struct{}                     // not nil: nothing new is accepted and no turn begins; closed when none is under way
	onResume func(*Turn)
}

// Open makes the tables and goes on with what was interrupted.
func Open(ctx context.Context, database *db.DB, a Agent, o Options) (*Service, error) {
	if err := database.Migrate(ctx, "talk", migrations); err != nil {
		return nil, err
	}
	if o.Depth <= 0 {
		o.Depth = 50
	}
	if o.Parallel <= 0 {
		o.Parallel = 64
	}
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	r := &Service{
		db: database, agent: a, options: o,
		places: make(chan struct{}, o.Parallel),
		lines:  map[Person]*line{}, active: map[*Turn]context.CancelCauseFunc{},
	}
	r.background, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	if o.Node == "" {
		if err := r.recover(ctx); err != nil {
			r.stop()
			return nil, err
		}
	}
	return r, nil
}

// Resumed are the turns that were interrupted when the room was last left, and
// are made again.
func (r *Service) Resumed() []*Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.resumed)
}

// OnResume has f called for every turn that is made again, those that are being
// made already included.
func (r *Service) OnResume(f func(*Turn)) {
	r.mu.Lock()
	r.onResume = f
	before := slices.Clone(r.resumed)
	r.mu.Unlock()
	for _, t := range before {
		f(t)
	}
}

// Close ends the turns under way, which are made again at the next start, and
// waits for them.
func (r *Service) Close() {
	r.stop()
	r.work.Wait()
}

func (r *Service) now() time.Time { return r.options.Clock.Now().UTC() }
