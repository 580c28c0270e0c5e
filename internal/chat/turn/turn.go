package turn

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/store/db"
)

// Turn is a message and its answer in progress.
type Turn struct {
	ID      string
	Message conversation.Message
	Queued  bool // earlier messages of the person were waiting when it arrived

	attempts int
	stopped  bool                                  // a person stopped it; guarded by the Service
	seq      int64                                 // its position among the person's messages, if it was loaded
	trace    func(context.Context) context.Context // of the request; nil if another process received it

	mu       sync.Mutex
	events   []agent.Event
	replayed bool
	changed  chan struct{} // closed and replaced at every change
	done     bool
	reply    agent.Reply
	err      error
}

func newTurn(id string, m conversation.Message) *Turn {
	return &Turn{ID: id, Message: m, changed: make(chan struct{})}
}

// Unfollowed is the error of Follow when it returned before the turn had ended.
type Unfollowed struct{ error }

func (u Unfollowed) Unwrap() error { return u.error }

// Follow passes every event of the turn to see, from the first one on, and returns the
// outcome, also when ctx has ended in the meantime. If ctx ends before, or see returns an
// error, Follow returns Unfollowed and the turn continues.
func (t *Turn) Follow(ctx context.Context, see func(agent.Event) error) (agent.Reply, error) {
	for next := 0; ; {
		left := ctx.Err() != nil
		fresh, changed, done := t.since(next)
		for _, e := range fresh {
			if err := see(e); err != nil {
				return agent.Reply{}, Unfollowed{err}
			}
		}
		next += len(fresh)
		switch {
		case done:
			return t.reply, t.err
		case left:
			return agent.Reply{}, Unfollowed{context.Cause(ctx)}
		}
		select {
		case <-changed:
		case <-ctx.Done():
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

// Send accepts a message: it is stored when Send returns, and will be answered even if
// the client disconnects or this node stops. A message with the key of an earlier one
// returns the turn of that one, or tries it again if it failed.
func (r *Service) Send(ctx context.Context, m conversation.Message) (*Turn, error) {
	if err := m.Person.Check(); err != nil {
		return nil, err
	}
	if r.isDraining() {
		return nil, errLeaving
	}
	if m.Key != "" {
		if t, err := r.again(ctx, m); t != nil || err != nil {
			return t, err
		}
	}
	if err := r.Conversations.Prepare(ctx, m); err != nil {
		return nil, err
	}
	t := newTurn("msg_"+rand.Text(), m)
	if r.options.CarryTrace != nil {
		t.trace = r.options.CarryTrace(ctx)
	}
	r.register(t) // before it is stored, so that the same message on another connection finds it
	twin, err := r.insert(ctx, t)
	if twin || err != nil {
		r.unregister(t)
		if twin { // the same message was sent twice at the same time
			return r.again(ctx, m)
		}
		return nil, err
	}
	r.work.Go(func() { r.run(r.background, t) })
	return t, nil
}

// again returns the turn of a message that was sent before, to this node or another, or
// nil. One that failed is tried again, as the person's last message.
func (r *Service) again(ctx context.Context, m conversation.Message) (*Turn, error) {
	t, status, err := r.lookUp(ctx, m)
	if t == nil || err != nil {
		return nil, err
	}
	if err := sameMessage(t.Message, m); err != nil {
		return nil, err
	}
	if here := r.registered(t.ID); here != nil {
		return here, nil
	}
	if status == conversation.Failed {
		retried, err := r.retry(ctx, t, m)
		if err != nil {
			return nil, err
		}
		if retried {
			r.register(t)
			r.work.Go(func() { r.run(r.background, t) })
			return t, nil
		}
	}
	r.follow(t)
	return t, nil
}

// sameMessage refuses a key that belongs to another message.
func sameMessage(before, now conversation.Message) error {
	sameText := before.Text == now.Text || before.Audio != "" && before.Audio == now.Audio
	if sameText && before.Conversation == now.Conversation && slices.EqualFunc(before.Attachments, now.Attachments, conversation.Attachment.Same) {
		return nil
	}
	return fault.New(fault.Conflict, "the message_key %q belongs to another message", now.Key).
		WithHint("use a new key for each message, and the same key only to send the same message again")
}

func tooMany(depth int) error {
	return fault.New(fault.Limit, "%d messages are waiting already", depth).
		WithHint("wait until an earlier one is answered, then try again")
}

var errLeaving = fault.New(fault.Unavailable, "the server is shutting down").
	WithHint("try again: another node answers, or this one after its restart")

// Stopped is the Stop of a turn that a person stopped.
const Stopped llm.Stop = "stopped"

var (
	// ErrMoved is the outcome of a turn that goes on elsewhere: this server is stopping.
	ErrMoved = fault.New(fault.Unavailable, "the server is shutting down; the message is stored and will be answered").
			WithHint("send it again with the same message_key to get its answer, from another node or after the restart")

	errStopped = fault.New(fault.Cancelled, "the person stopped the answer")
)

// Attach returns the turn of a message that was sent before. If it is answered on
// another node, its events are known here when it has ended.
func (r *Service) Attach(ctx context.Context, id string) (*Turn, error) {
	if t := r.registered(id); t != nil {
		return t, nil
	}
	var t *Turn
	err := r.db.Read(ctx, func(tx *db.Tx) (err error) {
		t, err = scanTurn(tx.QueryRow(ctx, `SELECT `+turnColumns+` FROM talk_turns WHERE id = $1`, id))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "no message %q", id).WithHint("use the message_id of the first event or of the answer; old messages are deleted")
	}
	if err != nil {
		return nil, err
	}
	r.follow(t)
	return t, nil
}

// Stop ends the answer to a message: the request to the model and the calls of tools are
// cancelled, and what was said so far is the answer. A message that is still waiting gets
// an empty one. Stopping an answered message does nothing.
func (r *Service) Stop(ctx context.Context, id string) error {
	t, err := r.Attach(ctx, id)
	if err != nil {
		return err
	}
	ended, err := r.stopWaiting(ctx, t)
	if err != nil {
		return err
	}
	if ended {
		r.broadcast(ctx, t.Message.Person)
		return nil
	}
	r.stopRunning(id)
	if r.options.Broadcast != nil {
		r.options.Broadcast(context.WithoutCancel(ctx), stopWord+id)
	}
	return nil
}

// stopWord begins a notification to stop a turn. No name of an organisation does.
const stopWord = "\x01"

// stopRunning cancels the agent that answers a turn on this node, or will in a moment.
func (r *Service) stopRunning(id string) {
	r.mu.Lock()
	t := r.turns[id]
	if t != nil {
		t.stopped = true
	}
	cancel := r.active[t]
	r.mu.Unlock()
	if cancel != nil {
		cancel(errStopped)
	}
}

// stopWaiting ends a turn that has not begun.
func (r *Service) stopWaiting(ctx context.Context, t *Turn) (waited bool, err error) {
	stopped, ended := stoppedReply(agent.Reply{RequestID: t.Message.RequestID, Language: "en"}), r.now()
	reply, err := json.Marshal(stopped)
	if err != nil {
		return false, err
	}
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE talk_turns SET status = 'done', reply = $1, ended = $2 WHERE id = $3 AND status = 'waiting'`,
			string(reply), ended.UnixMicro(), t.ID)
		if waited = n > 0; err != nil || !waited {
			return err
		}
		if err := r.saveEvents(ctx, tx, t, ended); err != nil {
			return err
		}
		return r.options.OnOutcome(ctx, tx, t, stopped, nil)
	})
	return waited, err
}

// stoppedReply is the reply of a turn that a person stopped.
func stoppedReply(reply agent.Reply) agent.Reply {
	reply.Stop = Stopped
	reply.Notices = append(reply.Notices, agent.Notice{Code: "stopped", Message: "the answer was stopped"})
	return reply
}
