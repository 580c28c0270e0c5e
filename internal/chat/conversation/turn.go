package conversation

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
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

// Place is a place in the line of a person's messages. It is reserved as soon as a
// request was read, so that checks, logging and the database, which can take long under
// load, do not change the order of messages.
type Place struct {
	service  *Service
	person   Person
	line     *personQueue
	received time.Time
	begins   time.Time // until then, messages that were received before it may take a place before it
	turn     chan struct{}
	begun    bool // guarded by the Service
	release  sync.Once
}

// Reserve returns a place in a person's line: after all messages that were received
// before, as far as they were read by now or are soon. The caller sends a message with
// it, or calls Release.
func (r *Service) Reserve(p Person, received time.Time) *Place {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	l := r.enterLocked(p)
	place := &Place{service: r, person: p, line: l, received: received, begins: now.Add(r.lag.margin(now, received)), turn: make(chan struct{}, 1)}
	at := len(l.places)
	for at > 0 && !l.places[at-1].begun && l.places[at-1].received.After(received) {
		at--
	}
	l.places = slices.Insert(l.places, at, place)
	if at == 0 {
		place.turn <- struct{}{}
	}
	return place
}

// wait waits until all messages before it are stored or refused.
func (p *Place) wait() {
	if d := time.Until(p.begins); d > 0 {
		time.Sleep(d)
	}
	for !p.begin() {
		<-p.turn
	}
}

// begin reports whether it is the first; from then on nobody can take a place before it.
func (p *Place) begin() bool {
	p.service.mu.Lock()
	defer p.service.mu.Unlock()
	p.begun = p.line.places[0] == p
	return p.begun
}

// Release lets the next message pass. It can be called more than once.
func (p *Place) Release() {
	p.release.Do(func() {
		p.service.mu.Lock()
		l := p.line
		l.places = slices.DeleteFunc(l.places, func(other *Place) bool { return other == p })
		if len(l.places) > 0 {
			select {
			case l.places[0].turn <- struct{}{}:
			default: // it knows
			}
		}
		p.service.mu.Unlock()
		p.service.leave(p.person, l)
	})
}

// lag is how late requests were read recently, on a machine that is busy.
type lag struct {
	longest time.Duration
	since   time.Time
}

const (
	unnoticed  = 8 * time.Millisecond // how exact received times are: two ticks of the system's clock
	maxMargin  = 500 * time.Millisecond
	remembered = 10 * time.Second
)

// margin returns how long a message waits for others that were received before it and
// read after it: nothing on an idle machine.
func (l *lag) margin(now, received time.Time) time.Duration {
	late := now.Sub(received)
	if late > l.longest || now.Sub(l.since) > remembered {
		l.longest, l.since = late, now
	}
	if l.longest <= unnoticed {
		return 0
	}
	return min(2*l.longest, maxMargin)
}

// personQueue is the queue of a person's messages that this node answers. It exists while it is
// in use. Whether messages on other nodes come first is decided by the database: see
// begin.
type personQueue struct {
	users  int      // number of users; guarded by the Service
	places []*Place // of messages that are not stored yet; guarded by the Service

	mu      sync.Mutex // held while a message is stored, so that the stored order is that of the queue
	waiting []*Turn
	current *Turn // being answered

	signal  sync.Mutex
	changed chan struct{} // closed and replaced when another node changed the person's messages
}

// enter returns a person's queue and counts a user; leave releases it.
func (r *Service) enter(p Person) *personQueue {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.enterLocked(p)
}

func (r *Service) enterLocked(p Person) *personQueue {
	l := r.lines[p]
	if l == nil {
		l = &personQueue{changed: make(chan struct{})}
		r.lines[p] = l
	}
	l.users++
	return l
}

func (r *Service) leave(p Person, l *personQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(r.lines, p)
	}
}

// later returns a channel that is closed at the next change on another node.
func (l *personQueue) later() <-chan struct{} {
	l.signal.Lock()
	defer l.signal.Unlock()
	return l.changed
}

func (l *personQueue) broadcast() {
	l.signal.Lock()
	defer l.signal.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Send accepts a message: it is stored when Send returns, and will be answered even if
// the client disconnects or this node stops. A message with the key of an earlier one
// returns the turn of that one, or tries it again if it failed.
func (r *Service) Send(ctx context.Context, m Message) (*Turn, error) {
	place := m.Place
	if place == nil {
		place = r.Reserve(m.Person, time.Now())
	}
	defer place.Release()
	if err := m.Person.Check(); err != nil {
		return nil, err
	}
	if r.isDraining() {
		return nil, errLeaving
	}
	place.wait()
	l := place.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Key != "" {
		if t, err := r.earlier(ctx, l, m); t != nil || err != nil {
			return t, err
		}
	}
	if err := r.startConversation(ctx, m); err != nil {
		return nil, err
	}
	t := newTurn("msg_"+rand.Text(), m)
	if r.options.CarryTrace != nil {
		t.trace = r.options.CarryTrace(ctx)
	}
	twin, err := r.insert(ctx, t)
	if twin || err != nil {
		if twin { // sent to another node at the same time
			return r.again(ctx, l, m)
		}
		return nil, err
	}
	r.join(l, t)
	return t, nil
}

// earlier returns the turn of a message with the same key, or nil. l.mu is held.
func (r *Service) earlier(ctx context.Context, l *personQueue, m Message) (*Turn, error) {
	for _, t := range append([]*Turn{l.current}, l.waiting...) {
		if t != nil && (t.Message.Key == m.Key || t.ID == m.Key) {
			return t, sameMessage(t.Message, m)
		}
	}
	return r.again(ctx, l, m)
}

// again returns the turn of a message that was sent before, to this node or another, or
// nil. One that failed is tried again, as the person's last message. l.mu is held.
func (r *Service) again(ctx context.Context, l *personQueue, m Message) (*Turn, error) {
	t, status, err := r.lookUp(ctx, m)
	if t == nil || err != nil {
		return nil, err
	}
	if err := sameMessage(t.Message, m); err != nil {
		return nil, err
	}
	if status == failed {
		retried, err := r.retry(ctx, t, m)
		if err != nil {
			return nil, err
		}
		if retried {
			r.join(l, t)
			return t, nil
		}
	}
	r.follow(t)
	return t, nil
}

// sameMessage refuses a key that belongs to another message.
func sameMessage(before, now Message) error {
	sameText := before.Text == now.Text || before.Audio != "" && before.Audio == now.Audio
	if sameText && before.Conversation == now.Conversation && sameAttachments(before.Attachments, now.Attachments) {
		return nil
	}
	return fault.New(fault.Conflict, "the message_key %q belongs to another message", now.Key).
		WithHint("use a new key for each message, and the same key only to send the same message again")
}

// join appends a turn to its queue and makes sure that a goroutine works on it. l.mu is
// held.
func (r *Service) join(l *personQueue, t *Turn) {
	r.register(t)
	l.waiting = append(l.waiting, t)
	if l.current != nil {
		return
	}
	l.current = l.take()
	r.enter(t.Message.Person)
	r.work.Go(func() { r.answer(t.Message.Person, l) })
}

// take removes the first waiting turn, or returns nil. l.mu is held.
func (l *personQueue) take() *Turn {
	if len(l.waiting) == 0 {
		return nil
	}
	first := l.waiting[0]
	l.waiting = l.waiting[1:]
	return first
}

// answer works through a queue until it is empty.
func (r *Service) answer(p Person, l *personQueue) {
	defer r.leave(p, l)
	for t := l.current; t != nil; {
		r.run(r.background, l, t)
		l.mu.Lock()
		l.current = l.take()
		t = l.current
		l.mu.Unlock()
	}
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
// another node, its events are not known here, only its outcome is.
func (r *Service) Attach(ctx context.Context, id string) (*Turn, error) {
	r.mu.Lock()
	t := r.turns[id]
	r.mu.Unlock()
	if t != nil {
		return t, nil
	}
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
func (r *Service) stopWaiting(ctx context.Context, t *Turn) (ended bool, err error) {
	reply, err := json.Marshal(stoppedReply(agent.Reply{RequestID: t.Message.RequestID, Language: "en"}))
	if err != nil {
		return false, err
	}
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `UPDATE talk_turns SET status = 'done', reply = $1, ended = $2 WHERE id = $3 AND status = 'waiting'`,
			string(reply), r.now().UnixMicro(), t.ID)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		ended = n > 0
		return err
	})
	return ended, err
}

// stoppedReply is the reply of a turn that a person stopped.
func stoppedReply(reply agent.Reply) agent.Reply {
	reply.Stop = Stopped
	reply.Notices = append(reply.Notices, agent.Notice{Code: "stopped", Message: "the answer was stopped"})
	return reply
}
