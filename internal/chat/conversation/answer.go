package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
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
	why, err := json.Marshal(fault.From(cause))
	if err == nil {
		err = r.db.Exec(ctx, `UPDATE talk_turns SET status = $1, failure = $2, ended = $3 
				WHERE id = $4 AND node = $5 AND (status = 'waiting' OR status = 'running' AND attempts = $6)`,
			failed, string(why), r.now().UnixMicro(), t.ID, r.options.Node, t.attempts)
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
	r.options.Bus.PublishFor(principal.OwnerOf(ctx), Started{Turn: t.ID, Person: t.Message.Person.String(), RequestID: t.Message.RequestID})
	began := time.Now()
	reply, err = r.agent.Turn(ctx, request, r.show(ctx, t))
	r.options.Bus.PublishFor(principal.OwnerOf(ctx), finished(t, reply, err, time.Since(began)))
	return reply, err
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
	history, err := r.latest(ctx, p, m.Conversation, settings.HistorySent)
	if err != nil {
		return agent.Request{}, err
	}
	attached, err := r.attachments(ctx, t)
	if err != nil {
		return agent.Request{}, err
	}
	request, err := r.requestOf(ctx, p, prefs, func(status string) { t.emit(agent.Status{Message: status}) })
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

// requestOf returns what all requests of a person have. It passes to say what it waits for.
func (r *Service) requestOf(ctx context.Context, p profile.Person, prefs profile.Preferences, say func(status string)) (agent.Request, error) {
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
	return agent.Reply{RequestID: request.ID, Responses: []string{text}, Language: prefs.ResponseLanguage}, nil
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

// Assistant answers messages with an agent. It tracks labelled data of a conversation
// from turn to turn.
type Assistant struct {
	Agent *agent.Agent
	Err   error // why there is no agent, if there is none
	Flow  Flow
}

// Flow tracks which labelled data a context has read.
type Flow interface {
	Begin(ctx context.Context) context.Context
	Recall(ctx context.Context, name string) error
	Remember(ctx context.Context, name string) error
}

// About identifies the model; it is empty if there is none.
func (a Assistant) About() llm.About {
	if a.Agent == nil {
		return llm.About{}
	}
	return a.Agent.About()
}

// Models identifies the models that a message can choose, the usual one first.
func (a Assistant) Models() []llm.About {
	if a.Agent == nil {
		return nil
	}
	return a.Agent.Models()
}

// ForgetConversation removes what one conversation of a person left beside its history.
func (a Assistant) ForgetConversation(ctx context.Context, p profile.Person, conversation string) error {
	if a.Agent == nil {
		return nil
	}
	return a.Agent.Reset(ctx, p.Org, p.User, conversation)
}

// Forget removes what a person's conversations left beside their history.
func (a Assistant) Forget(ctx context.Context, p profile.Person) error {
	if a.Agent == nil {
		return nil
	}
	return a.Agent.Forget(ctx, p.Org, p.User)
}

// Scope returns the tools that turns with these servers may use.
func (a Assistant) Scope(servers []agent.Server) *tool.Scope {
	if a.Agent == nil {
		return &tool.Scope{Allows: func(tool.Ref) bool { return false }}
	}
	return a.Agent.Scope(servers)
}

// flowRecord names what a conversation has read.
func flowRecord(p profile.Person, conversation string) string {
	return "talk:" + p.Org + "/" + p.User + "/" + conversation
}

// Inherit makes a conversation remember which labelled data another has read.
func (a Assistant) Inherit(ctx context.Context, from profile.Person, id string, to profile.Person, copied string) error {
	ctx = a.Flow.Begin(ctx)
	if err := a.Flow.Recall(ctx, flowRecord(from, id)); err != nil {
		return err
	}
	return a.Flow.Remember(ctx, flowRecord(to, copied))
}

// Turn answers one message.
func (a Assistant) Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	if a.Agent == nil {
		return agent.Reply{RequestID: r.ID}, a.Err
	}
	ctx = a.Flow.Begin(ctx)
	record := flowRecord(profile.Person{Org: r.Org, User: r.User}, r.Conversation)
	if err := a.Flow.Recall(ctx, record); err != nil {
		return agent.Reply{RequestID: r.ID}, err
	}
	reply, err := a.Agent.Turn(ctx, r, emit)
	if problem := a.Flow.Remember(context.WithoutCancel(ctx), record); err == nil {
		err = problem
	}
	return reply, err
}

// Scoper is an Agent that knows which tools turns may use.
type Scoper interface {
	Scope(servers []agent.Server) *tool.Scope
}

// InScope returns ctx with the tools that the conversations of the principal's person may
// use, for jobs that were started in one. Outside of chats it is ctx.
func (r *Service) InScope(ctx context.Context) (context.Context, error) {
	p, in, err := profile.ActingFor(ctx)
	scoper, can := r.agent.(Scoper)
	if !in || !can || err != nil {
		return ctx, err
	}
	offered, err := r.Servers.Offered(ctx, p, func(string) {})
	if err != nil {
		return ctx, err
	}
	return tool.WithScope(ctx, scoper.Scope(offered)), nil
}
