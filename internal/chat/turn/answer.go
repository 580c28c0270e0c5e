package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// run answers one message when its turn has come, and stores the outcome before anyone
// receives it. The message was accepted, so run waits for a database that is
// unreachable.
func (r *Service) run(ctx context.Context, t *Turn) {
	ctx, _ = db.WaitForDatabase(ctx)
	defer r.unregister(t)
	switch mine, err := r.await(ctx, t); {
	case err != nil && ctx.Err() != nil: // the server is stopping; the stored turn is unchanged
		t.end(agent.Reply{}, ErrMoved)
		return
	case err != nil:
		r.giveUp(ctx, t, err)
		return
	case !mine:
		r.follow(t)
		return
	}
	defer r.over()
	select { // after waiting for earlier turns, which may wait for a slot on another node
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
	}
	turn, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.own(t, cancel)
	reply, err := r.attempt(turn, t)
	r.own(t, nil)
	if errors.Is(context.Cause(turn), errStopped) {
		reply, err = stoppedReply(reply), nil
	}
	if ctx.Err() != nil {
		t.end(agent.Reply{}, ErrMoved)
		return
	}
	ended := r.now()
	kept := false
	failed := r.retryDB(ctx, func() (err2 error) {
		kept, err2 = r.finish(context.WithoutCancel(ctx), t, reply, err, ended)
		return err2
	})
	switch {
	case failed != nil && ctx.Err() != nil:
		t.end(agent.Reply{}, ErrMoved)
	case failed != nil:
		r.giveUp(ctx, t, failed)
	case !kept: // another node took over the turn while this one was disconnected
		r.follow(t)
	default:
		r.broadcast(ctx, t.Message.Person)
		t.end(reply, err)
	}
}

// giveUp ends a turn whose begin or outcome the database refuses, in another way than by being
// unreachable: without an end, it would keep the person's later messages waiting.
func (r *Service) giveUp(ctx context.Context, t *Turn, cause error) {
	r.options.Log.ErrorContext(ctx, "message cannot be answered", "request_id", t.Message.RequestID, "error", cause)
	ended := r.now()
	why, err := json.Marshal(fault.From(cause))
	if err == nil {
		err = r.db.Write(ctx, func(tx *db.Tx) error {
			n, err := tx.Exec(ctx, `UPDATE talk_turns SET status = $1, failure = $2, ended = $3
				WHERE id = $4 AND node = $5 AND (status = 'waiting' OR status = 'running' AND attempts = $6)`,
				conversation.Failed, string(why), ended.UnixMicro(), t.ID, r.options.Node, t.attempts)
			if err != nil || n == 0 {
				return err
			}
			if err := r.saveEvents(ctx, tx, t, ended); err != nil {
				return err
			}
			return r.options.OnOutcome(ctx, tx, t, agent.Reply{}, cause)
		})
	}
	if err != nil {
		r.options.Log.ErrorContext(ctx, "failure of a message not stored", "request_id", t.Message.RequestID, "error", err)
	}
	r.broadcast(ctx, t.Message.Person)
	t.end(agent.Reply{}, cause)
}

// register makes a turn known by its id, until unregister.
func (r *Service) register(t *Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns[t.ID] = t
}

func (r *Service) unregister(t *Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[t.ID] == t {
		delete(r.turns, t.ID)
	}
}

// registered returns the turn with an id that this node has accepted or taken over and not
// finished, or nil.
func (r *Service) registered(id string) *Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[id]
}

// await waits until every earlier message of the person is answered, on whichever node,
// and begins the turn. There is no timeout: an earlier message stays first until it is
// answered, by its node or, if that stops, by another. mine is false if another node
// took over the turn.
func (r *Service) await(ctx context.Context, t *Turn) (mine bool, err error) {
	for {
		changed := r.changed(t.Message.Person)
		var state standing
		err := r.retryDB(ctx, func() (err error) {
			state, err = r.standing(ctx, t)
			return err
		})
		if state == begun && err == nil {
			if !r.startTurn() { // the service is draining
				<-ctx.Done()
				return false, context.Cause(ctx)
			}
			err = r.retryDB(ctx, func() (err error) {
				state, err = r.begin(ctx, t)
				return err
			})
			if state == begun && err == nil {
				return true, nil
			}
			r.over()
		}
		if err != nil || state == taken {
			return false, err
		}
		select {
		case <-changed:
		case <-time.After(pollInterval): // a notification may have been lost
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// attempt runs the agent.
func (r *Service) attempt(ctx context.Context, t *Turn) (reply agent.Reply, err error) {
	if t.attempts > r.options.Attempts {
		return reply, fault.New(fault.Internal, "answering was interrupted %d times", t.attempts-1).
			WithHint("send the message again")
	}
	if t.trace != nil {
		ctx = t.trace(ctx)
	}
	who := principal.Local()
	if t.Message.Asker != nil {
		who = *t.Message.Asker
		if r.options.CurrentPrincipal != nil {
			if who, err = r.options.CurrentPrincipal(ctx, who); err != nil {
				return reply, err
			}
		}
	}
	ctx = t.Message.Person.With(ctx, who)
	var request agent.Request
	err = r.retryDB(ctx, func() (err error) {
		request, err = r.request(ctx, t)
		return err
	})
	if err != nil {
		return reply, err
	}
	if strings.TrimSpace(request.Message) == "" && len(request.Attachments) == 0 { // it only chose a mode or a language
		return r.confirm(ctx, t, request)
	}
	return r.ask(ctx, t.ID, t.Message.Person, request, r.show(ctx, t))
}

// ask lets the agent answer, between two events.
func (r *Service) ask(ctx context.Context, id string, p profile.Person, request agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	owner, began := principal.OwnerOf(ctx), time.Now()
	r.options.Bus.PublishFor(owner, Started{id, p.Org, p.User, request.ID, cmp.Or(request.Model, r.usualModel())})
	reply, err := r.agent.Turn(ctx, request, emit)
	end := Finished{
		Turn: id, Org: p.Org, User: p.User, RequestID: request.ID, DurationMS: float64(time.Since(began).Microseconds()) / 1000,
		Iterations: reply.Iterations, ToolCalls: reply.ToolCalls, Model: reply.Model,
		Input: reply.Usage.Input, Output: reply.Usage.Output, Cost: reply.Usage.Cost,
	}
	if err != nil {
		end.Error = string(fault.CodeOf(err))
	}
	r.options.Bus.PublishFor(owner, end)
	return reply, err
}

// Answer lets the agent answer what gather asks of it for a person, beside the messages that
// are stored: in no order, and not again after a crash. It waits until fewer are answered at a
// time. Ending ctx ends the answer.
func (r *Service) Answer(ctx context.Context, id string, p profile.Person, gather func(context.Context) (agent.Request, error), emit func(agent.Event)) (agent.Reply, error) {
	if err := p.Check(); err != nil {
		return agent.Reply{}, err
	}
	if !r.startTurn() {
		return agent.Reply{}, errLeaving
	}
	defer r.over()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return agent.Reply{}, fault.Wrap(fault.Cancelled, context.Cause(ctx), "wait for other answers")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.background, func() { cancel(errLeaving) })() //nolint:contextcheck // the service ends it too
	ctx = p.With(ctx, principal.Of(ctx))
	request, err := gather(ctx)
	if err != nil {
		return agent.Reply{}, err
	}
	return r.ask(ctx, id, p, request, emit)
}

// show stores what a tool shows, and then passes the event on.
func (r *Service) show(ctx context.Context, t *Turn) func(agent.Event) {
	return func(e agent.Event) {
		if m, ok := e.(agent.Media); ok {
			if err := r.Conversations.SaveShown(ctx, t.ID, t.Message.Person, m); err != nil {
				r.options.Log.WarnContext(ctx, "store what a tool shows", "request_id", t.Message.RequestID, "tool", m.Tool, "error", err)
			}
			e = agent.Media{MediaInfo: m.MediaInfo}
		}
		t.emit(e)
	}
}

// retryDB retries until the database is reachable again: an accepted message is
// answered, however long that takes. Other errors are returned.
func (r *Service) retryDB(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || !unreachable(err) {
			return err
		}
		r.options.Log.WarnContext(ctx, "database unreachable, retrying", "error", err)
		if err := r.options.Clock.Sleep(ctx, pollInterval); err != nil {
			return context.Cause(ctx)
		}
	}
}

// unreachable reports whether an error means that the database is unreachable.
func unreachable(err error) bool { return fault.CodeOf(err) == fault.Unavailable }

// startTurn counts a turn that begins, unless the service is draining; over must be
// called when it has ended.
func (r *Service) startTurn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled != nil {
		return false
	}
	r.underWay++
	return true
}

func (r *Service) over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.underWay--; r.underWay == 0 && r.settled != nil {
		close(r.settled)
	}
}

func (r *Service) isDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settled != nil
}

// Drain accepts no new messages, begins no turns, and waits for those in progress until
// ctx ends. It returns how many were left.
func (r *Service) Drain(ctx context.Context) (left int) {
	r.mu.Lock()
	if r.settled == nil {
		r.settled = make(chan struct{})
		if r.underWay == 0 {
			close(r.settled)
		}
	}
	settled := r.settled
	r.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.underWay
}

// request gathers what the agent needs for a turn.
func (r *Service) request(ctx context.Context, t *Turn) (agent.Request, error) {
	m, p := t.Message, t.Message.Person
	text, prefs, err := r.Profiles.Directives(ctx, p, m.Text)
	if err != nil {
		return agent.Request{}, err
	}
	settings, err := r.Profiles.Settings.Of(ctx, profile.Org(p.Org))
	if err != nil {
		return agent.Request{}, err
	}
	history, err := r.Conversations.Latest(ctx, p, m.Conversation, settings.HistorySent)
	if err != nil {
		return agent.Request{}, err
	}
	attached, err := r.Conversations.Attachments(ctx, t.ID, t.Message)
	if err != nil {
		return agent.Request{}, err
	}
	request, err := r.RequestOf(ctx, p, prefs, func(status string) { t.emit(agent.Status{Message: status}) })
	if err != nil {
		return agent.Request{}, err
	}
	if m.Hint != "" && !prefs.LanguageChosen {
		request.Language = m.Hint
	}
	request.ID, request.Client, request.Conversation, request.Model = m.RequestID, m.Client, m.Conversation, m.Model
	request.Message, request.Attachments, request.History, request.First = text, attached, history, prefs.FirstInteraction
	request.Journal = journal{r, t}
	return request, nil
}

// RequestOf returns what all requests of a person have. It passes to say what it waits for.
func (r *Service) RequestOf(ctx context.Context, p profile.Person, prefs profile.Preferences, say func(status string)) (agent.Request, error) {
	prompts, err := r.Profiles.Layers(ctx, p, prefs.Mode)
	if err != nil {
		return agent.Request{}, err
	}
	offered, err := r.Servers.Offered(ctx, p, say)
	return agent.Request{
		Org: p.Org, User: p.User, Language: prefs.ResponseLanguage, Prompts: prompts, Servers: offered, Memory: r.Profiles.Remember(p),
	}, err
}

// confirm answers a message that only chooses a mode or a language.
func (r *Service) confirm(ctx context.Context, t *Turn, request agent.Request) (reply agent.Reply, err error) {
	prefs, err := r.Profiles.Preferences.Of(ctx, t.Message.Person)
	if err != nil {
		return reply, err
	}
	text := prefs.String()
	t.emit(agent.Text{Text: text})
	return agent.Reply{RequestID: request.ID, Responses: []string{text}, Language: prefs.ResponseLanguage, Away: request.Away()}, nil
}

// journal stores the steps of a turn while it is not answered. Only the node that answers
// it can: one that was taken for dead makes no further calls.
type journal struct {
	service *Service
	turn    *Turn
}

func (j journal) Load(ctx context.Context) (steps []agent.Step, err error) {
	return db.Find(ctx, j.service.db, func(row db.Scanner) (s agent.Step, err error) {
		var data string
		err = row.Scan(&s.Iteration, &s.Call, &data)
		s.Data = json.RawMessage(data)
		return s, err
	}, `SELECT iteration, call, data FROM talk_steps WHERE turn = $1`, j.turn.ID)
}

func (j journal) Save(ctx context.Context, s agent.Step) error {
	r := j.service
	return r.retryDB(ctx, func() error {
		return r.db.Write(ctx, func(tx *db.Tx) error {
			n, err := tx.Exec(ctx, `INSERT INTO talk_steps (turn, iteration, call, data)
				SELECT id, $2, $3, $4 FROM talk_turns WHERE id = $1 AND node = $5 AND status = 'running' AND attempts = $6
				ON CONFLICT (turn, iteration, call) DO UPDATE SET data = excluded.data`,
				j.turn.ID, s.Iteration, s.Call, string(s.Data), r.options.Node, j.turn.attempts)
			if err == nil && n == 0 {
				err = errTaken
			}
			return err
		})
	})
}

// usualModel is the model of messages that choose none.
func (r *Service) usualModel() string {
	if r.options.Model == nil {
		return ""
	}
	return r.options.Model()
}
