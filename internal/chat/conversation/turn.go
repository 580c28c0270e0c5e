package conversation

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/principal"
)

// Message is a message of a person.
type Message struct {
	RequestID    string       `json:"request_id"`
	Person       Person       `json:"-"`
	Place        *Place       `json:"-"` // among the person's messages; nil means after those that were sent so far
	Client       string       `json:"client,omitempty"`
	Model        string       `json:"model,omitempty"` // that answers; empty means the usual one
	Key          string       `json:"-"`               // idempotency key of the client: the same key is the same message; may be empty
	Conversation string       `json:"conversation,omitempty"`
	Text         string       `json:"text"`
	Attachments  []Attachment `json:"attachments,omitempty"`
	// Audio is the hash of the sound that Text was transcribed from, or "". The same sound
	// is the same message, whatever was understood.
	Audio      string `json:"audio,omitempty"`
	Transcript string `json:"transcript,omitempty"` // what was understood
	// Warnings are what the sender is told with the answer.
	Warnings []string `json:"warnings,omitempty"`
	Hint     string   `json:"hint,omitempty"` // language of the answer if the person has not chosen one
	// Note is stored with the message for the sender: what it needs to know when the
	// turn runs again after a restart.
	Note json.RawMessage `json:"note,omitempty"`
	// Asker is the principal that sent it, whose rights the turn has; nil means the
	// local owner.
	Asker *principal.Principal `json:"asker,omitempty"`
}

// Turn is a message and its answer in progress.
type Turn struct {
	ID      string
	Message Message
	Queued  bool // earlier messages of the person were waiting when it arrived

	attempts int
	stopped  bool                                  // a person stopped it; guarded by the Service
	seq      int64                                 // its position among the person's messages, if it was loaded
	trace    func(context.Context) context.Context // of the request; nil if another process received it

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

// Follow passes every event of the turn to see, from the first one on, and returns the
// outcome. If ctx ends or see returns an error, Follow returns and the turn continues.
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

// Wait waits for the outcome.
func (t *Turn) Wait(ctx context.Context) (agent.Reply, error) {
	return t.Follow(ctx, func(agent.Event) error { return nil })
}

// since returns the events after the first n, and whether the turn has ended.
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
