// Package conversation stores people's conversations with the agent: their messages and
// answers in order, preferences, prompts and servers. A message is stored before it is
// accepted. The messages of a person are answered one at a time in the order they
// arrived, those of different people in parallel. A turn does not depend on the client
// that sent the message, nor on a lock with a timeout: a turn that a crash interrupted
// runs again after the restart, or on another node.
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

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Agent answers one message.
type Agent interface {
	Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error)
}

// Options are the options of a Service. The zero value of each field is usable.
type Options struct {
	Servers Servers // servers that people and organisations may add; nil means none
	// Secrets encrypts their tokens; without a key no tokens can be stored.
	Secrets  secret.Box
	Shares   Shares      // of conversations; nil means that nothing is shared
	Stored   StoredMedia // of one person; zero fields mean no limit
	Depth    int         // waiting messages per person; zero means 50
	Parallel int         // turns in parallel; zero means 64
	Attempts int         // of a turn that crashes interrupt; zero means 3
	// CurrentPrincipal returns the current rights of a principal that sent a message
	// earlier; its error is the answer. Nil uses the rights it had.
	CurrentPrincipal func(ctx context.Context, was principal.Principal) (principal.Principal, error)
	// Node names this process if several share the database; "" if not. It answers its
	// own messages; when a node has stopped, the caller calls TakeOver.
	Node string
	// Broadcast calls Receive on the other nodes; nil means there are none.
	Broadcast func(ctx context.Context, word string)
	// OnForget removes what else is stored of a person's conversations when their
	// history is deleted; may be nil.
	OnForget func(ctx context.Context, p Person) error
	// OnForgetConversation does the same for one conversation; may be nil.
	OnForgetConversation func(ctx context.Context, p Person, conversation string) error
	// CarryTrace returns a function that makes another context part of the trace of ctx: a
	// turn belongs to the trace of its request. Nil means there are no traces.
	CarryTrace func(ctx context.Context) func(context.Context) context.Context
	Bus        *event.Bus
	Log        *slog.Logger
	Clock      clock.Clock
}

// Service stores and answers messages. It is safe for concurrent use.
type Service struct {
	db      *db.DB
	agent   Agent
	options Options

	background context.Context // of turns, which outlive their requests
	stop       context.CancelFunc
	work       sync.WaitGroup
	slots      chan struct{} // limits turns in parallel

	resumed []*Turn // turns that were interrupted when the server stopped

	mu       sync.Mutex
	lines    map[Person]*personQueue
	lag      lag
	turns    map[string]*Turn                  // in progress on this node, by id
	active   map[*Turn]context.CancelCauseFunc // of turns whose agent is running
	underWay int                               // turns in progress
	settled  chan struct{}                     // not nil while draining; closed when no turn is in progress
	onResume func(*Turn)
}

// Open migrates the tables and resumes interrupted turns.
func Open(ctx context.Context, database *db.DB, a Agent, o Options) (*Service, error) {
	if err := database.Migrate(ctx, "talk", Migrations); err != nil { // the name from before the package was called conversation
		return nil, err
	}
	if err := moveUsage(ctx, database); err != nil {
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
		slots: make(chan struct{}, o.Parallel),
		lines: map[Person]*personQueue{}, active: map[*Turn]context.CancelCauseFunc{}, turns: map[string]*Turn{},
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

// Resumed returns the interrupted turns that run again.
func (r *Service) Resumed() []*Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.resumed)
}

// OnResume calls f for every turn that runs again, including those that already do.
func (r *Service) OnResume(f func(*Turn)) {
	r.mu.Lock()
	r.onResume = f
	before := slices.Clone(r.resumed)
	r.mu.Unlock()
	for _, t := range before {
		f(t)
	}
}

// Close cancels the turns in progress, which run again after the next start, and waits
// for them.
func (r *Service) Close() {
	r.stop()
	r.work.Wait()
}

func (r *Service) now() time.Time { return r.options.Clock.Now().UTC() }
