package conversation

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/principal"
)

// Message is something a person says.
type Message struct {
	RequestID    string `json:"request_id"`
	Person       Person `json:"-"`
	Client       string `json:"client,omitempty"`
	Key          string `json:"-"` // the client's own; the same one again is the same message; may be empty
	Conversation string `json:"conversation,omitempty"`
	Text         string `json:"text"`
	Hint         string `json:"hint,omitempty"` // language to answer in where the person has not chosen one
	// Note is the door's own, kept with the message: what it needs to know when
	// the turn is made again after a restart.
	Note json.RawMessage `json:"note,omitempty"`
	// Asker is who sent it, whose rights its turn has; nil is the local owner.
	Asker *principal.Principal `json:"asker,omitempty"`
}

// Turn is a message and what becomes of it.
type Turn struct {
	ID      string
	Message Message
	Queued  bool // others of the same person were before it when it came

	attempts int
	seq      int64 // its place among the person's, where it was read from disk

	mu      sync.Mutex
	events  []agent.Event
	changed chan struct{} // closed and replaced at every change
	done    bool
	reply   agent.Reply
	err     error
}

func newTurn(id string, m Message) *Turn {
	return &Turn{ID: id, Message: m, changed: make(chan struct{})}
}

// Follow hands every event of the turn to see, from the first on whenever it is
// called, and returns the outcome. When ctx ends, or see returns an error, that
// ends the following and not the turn.
func (t *Turn) Follow(ctx context.Context, see func(agent.Event) error) (agent.Reply, error) {
	for next := 0; ; {
		fresh, changed, done := t.since(next)
		for _, e := range fresh {
			if err := see(e); err != nil {
				return agent.Reply{}, err
			}
		}
		next += len(fresh)
		if done {
			return t.reply, t.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
	}
}

// Wait is Follow for those who only want the outcome.
func (t *Turn) Wait(ctx context.Context) (agent.Reply, error) {
	return t.Follow(ctx, func(agent.Event) error { return nil })
}

// since returns the events after the first n, and whether they are the last.
func (t *Turn) since(n int) (fresh []agent.Event, changed <-chan struct{}, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.events[n:]), t.changed, t.done
}

func (t *Turn) emit(e agent.Event) {
	t.change(func() { t.events = append(t.events, e) })
}

func (t *Turn) end(reply agent.Reply, err error) {
	t.change(func() { t.done, t.reply, t.err = true, reply, err })
}

func (t *Turn) change(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
	close(t.changed)
	t.changed = make(chan struct{})
}
