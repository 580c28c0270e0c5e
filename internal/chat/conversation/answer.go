package conversation

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// run answers one message, when it is its turn, and stores the outcome before
// anybody hears of it. It was accepted, so a database that is away is waited for.
func (r *Service) run(ctx context.Context, l *line, t *Turn) {
	ctx, _ = db.WaitForDatabase(ctx)
	switch mine, err := r.await(ctx, l, t); {
	case err != nil: // the house closes; the turn stays as it is on disk
		t.end(agent.Reply{}, errKept)
		return
	case !mine:
		r.follow(t)
		return
	}
	defer r.over()
	select { // after the wait for others, who may wait for a place on another node
	case r.places <- struct{}{}:
		defer func() { <-r.places }()
	case <-ctx.Done():
	}
	turn, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.own(t, cancel)
	reply, err := r.attempt(turn, t)
	r.own(t, nil)
	if ctx.Err() != nil {
		t.end(agent.Reply{}, errKept)
		return
	}
	ended := r.now()
	kept := false
	failed := r.persist(ctx, func() (err2 error) {
		kept, err2 = r.finish(context.WithoutCancel(ctx), t, reply, err, ended)
		return err2
	})
	switch {
	case failed != nil:
		t.end(agent.Reply{}, errKept)
	case !kept: // another node took the turn over while this one was cut off
		r.follow(t)
	default:
		r.tell(ctx, t.Message.Person)
		t.end(reply, err)
	}
}

var errKept = fault.New(fault.Unavailable, "the server is shutting down").
	WithHint("the message is kept and will be answered after the restart")

// await waits until every earlier message of the person is answered, on whichever
// node, and begins the turn. Nothing about that can run out: who is before us is
// before us until it is answered, by its node or, should that die, by another. It
// is not ours any more when another node took it over, thinking this one dead.
func (r *Service) await(ctx context.Context, l *line, t *Turn) (mine bool, err error) {
	for {
		if !r.startTurn() {
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		news := l.later()
		var state standing
		err := r.persist(ctx, func() (err error) {
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
		case <-news:
		case <-time.After(look): // a word may have been lost
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
	if t.Message.Asker != nil {
		who := *t.Message.Asker
		if r.options.CurrentPrincipal != nil {
			if who, err = r.options.CurrentPrincipal(ctx, who); err != nil {
				return reply, err
			}
		}
		ctx = principal.With(ctx, who)
	}
	var request agent.Request
	err = r.persist(ctx, func() (err error) {
		request, err = r.request(ctx, t)
		return err
	})
	if err != nil {
		return reply, err
	}
	r.options.Bus.Publish(Started{Turn: t.ID, Person: t.Message.Person.String(), RequestID: t.Message.RequestID})
	began := time.Now()
	reply, err = r.agent.Turn(ctx, request, t.emit)
	r.options.Bus.Publish(finished(t, reply, err, time.Since(began)))
	return reply, err
}

// persist tries until the database is there again: what was accepted is answered,
// however long that takes. Other errors are answers.
func (r *Service) persist(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || !away(err) {
			return err
		}
		r.options.Log.WarnContext(ctx, "the database is away, trying again", "error", err)
		if err := r.options.Clock.Sleep(ctx, look); err != nil {
			return context.Cause(ctx)
		}
	}
}

// away tells whether an error is the database's absence and not an answer of it.
func away(err error) bool { return fault.CodeOf(err) == fault.Unavailable }

// startTurn counts a turn that begins, unless none is to; over that it has ended.
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

// Drain accepts nothing new, begins no turn, and waits for those under way until
// ctx ends. It tells how many were left.
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
