package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// run answers one message when its turn has come, and stores the outcome before anyone
// receives it. The message was accepted, so run waits for a database that is
// unreachable.
func (r *Service) run(ctx context.Context, l *personQueue, t *Turn) {
	ctx, _ = db.WaitForDatabase(ctx)
	r.register(t)
	defer r.unregister(t)
	switch mine, err := r.await(ctx, l, t); {
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
	why, err := json.Marshal(failureOf(cause))
	if err == nil {
		err = r.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE talk_turns SET status = $1, failure = $2, ended = $3 
				WHERE id = $4 AND node = $5 AND (status = 'waiting' OR status = 'running' AND attempts = $6)`,
				failed, string(why), r.now().UnixMicro(), t.ID, r.options.Node, t.attempts)
			return err
		})
	}
	if err != nil {
		r.options.Log.ErrorContext(ctx, "failure of a message not stored", "request_id", t.Message.RequestID, "error", err)
	}
	r.broadcast(ctx, t.Message.Person)
	t.end(agent.Reply{}, cause)
}

// register makes a turn known by its id; unregister ends that.
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

// await waits until every earlier message of the person is answered, on whichever node,
// and begins the turn. There is no timeout: an earlier message stays first until it is
// answered, by its node or, if that stops, by another. mine is false if another node
// took over the turn.
func (r *Service) await(ctx context.Context, l *personQueue, t *Turn) (mine bool, err error) {
	for {
		if !r.startTurn() {
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		changed := l.later()
		var state standing
		err := r.retryDB(ctx, func() (err error) {
			state, err = r.begin(ctx, t)
			return err
		})
		if state == begun && err == nil {
			return true, nil
		}
		r.over()
		if err != nil || state == taken {
			return false, err
		}
		select {
		case <-changed:
		case <-time.After(pollInterval): // a notification may have been lost
		case <-ctx.Done():
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
	ctx = asPerson(ctx, who, t.Message.Person)
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
