// Package turn answers people's messages. A message is stored before it is accepted. The
// messages of a person are answered one at a time in the order they arrived, those of different
// people in parallel. A turn does not depend on the client that sent the message, nor on a lock
// with a timeout: a turn that a crash interrupted runs again after the restart, or on another
// node. Package conversation has what was said.
//
// A message takes this way: Send stores it, run waits until the earlier ones are answered
// (await), lets the agent answer (attempt) and stores the outcome (finish) before anyone
// receives it.
package turn

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Agent answers one message.
type Agent interface {
	Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error)
}

// Options are the options of a Service. The zero value of each field is usable.
type Options struct {
	Conversations conversation.Options
	Servers       servers.Options // without upstreams there are no servers

	Model    func() string // of messages that choose none; empty if there is none; nil means none
	Depth    int           // waiting messages per person; zero means 50
	Parallel int           // turns in parallel; zero means 64
	Attempts int           // of a turn that crashes interrupt; zero means 3
	// CurrentPrincipal returns the current rights of a principal that sent a message
	// earlier; its error is the answer. Nil uses the rights it had.
	CurrentPrincipal func(ctx context.Context, was principal.Principal) (principal.Principal, error)
	// Node names this process if several share the database; "" if not. It answers its
	// own messages; when a node has stopped, the caller calls TakeOver.
	Node string
	// Broadcast calls Receive on the other nodes; nil means there are none.
	Broadcast func(ctx context.Context, word string)
	// CarryTrace returns a function that makes another context part of the trace of ctx: a
	// turn belongs to the trace of its request. Nil means there are no traces.
	CarryTrace func(ctx context.Context) func(context.Context) context.Context
	// OnOutcome is called in the transaction that stores the outcome of a turn; nil does
	// nothing.
	OnOutcome func(ctx context.Context, tx *db.Tx, t *Turn, reply agent.Reply, failure error) error
	Bus       *event.Bus
	Log       *slog.Logger
	Clock     clock.Clock
}

// Service stores and answers messages. It is safe for concurrent use.
type Service struct {
	Conversations *conversation.Store
	Profiles      *profile.Store // of Conversations
	Servers       *servers.Registry

	db      *db.DB
	agent   Agent
	options Options

	background context.Context // of turns, which outlive their requests
	stop       context.CancelFunc
	work       sync.WaitGroup
	slots      chan struct{} // limits turns in parallel

	resumed []*Turn // turns that were interrupted when the server stopped

	mu       sync.Mutex
	changes  map[profile.Person]chan struct{}  // of people somebody waits for: see changed
	turns    map[string]*Turn                  // accepted by this node and not finished, by id
	active   map[*Turn]context.CancelCauseFunc // of turns whose agent is running
	underWay int                               // turns in progress
	settled  chan struct{}                     // not nil while draining; closed when no turn is in progress
	onResume func(*Turn)
}

// Open opens the conversations of a database and resumes interrupted turns.
func Open(ctx context.Context, database *db.DB, a Agent, o Options) (*Service, error) {
	store, err := conversation.Open(ctx, database, o.Conversations)
	if err != nil {
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
	if o.OnOutcome == nil {
		o.OnOutcome = func(context.Context, *db.Tx, *Turn, agent.Reply, error) error { return nil }
	}
	r := &Service{
		Conversations: store, Profiles: store.Profiles, Servers: servers.New(store.Profiles, o.Servers),
		db: database, agent: a, options: o,
		slots:   make(chan struct{}, o.Parallel),
		changes: map[profile.Person]chan struct{}{}, active: map[*Turn]context.CancelCauseFunc{}, turns: map[string]*Turn{},
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

// Started is published when a turn begins.
type Started struct {
	Turn      string `json:"turn"`
	Org       string `json:"org"`
	User      string `json:"user"`
	RequestID string `json:"request_id"`
	Model     string `json:"model,omitempty"`
}

// EventType is "chat.turn_started".
func (Started) EventType() string  { return "chat.turn_started" }
func (s Started) EventKey() string { return s.Turn }

// Finished is published when a turn has ended. It does not contain any text of the
// conversation.
type Finished struct {
	Turn       string  `json:"turn"`
	Org        string  `json:"org"`
	User       string  `json:"user"`
	RequestID  string  `json:"request_id"`
	DurationMS float64 `json:"duration_ms"`
	Iterations int     `json:"iterations"`
	ToolCalls  int     `json:"tool_calls"`
	Model      string  `json:"model,omitempty"`
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	Cost       float64 `json:"cost_usd"`
	Error      string  `json:"error,omitempty"` // its code
}

// EventType is "chat.turn_finished".
func (Finished) EventType() string  { return "chat.turn_finished" }
func (f Finished) EventKey() string { return f.Turn }
