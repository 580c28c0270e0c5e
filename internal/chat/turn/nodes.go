package turn

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/store/db"
)

// Several nodes may share a database. A message belongs to the node that accepted it,
// until that node has stopped: then another takes it over. The row decides, so a node
// that was only disconnected finds out when it stores its answer, and returns the other
// node's answer instead.

// pollInterval is how often a node polls for changes that it should have been notified of.
const pollInterval = time.Second

// Owners returns the nodes with unanswered messages.
func (r *Service) Owners(ctx context.Context) (nodes []string, err error) {
	return db.Find(ctx, r.db, db.Column[string],
		`SELECT DISTINCT node FROM talk_turns WHERE status IN ('waiting', 'running')`)
}

// TakeOver takes over the messages of nodes that have stopped.
func (r *Service) TakeOver(ctx context.Context, gone []string) error {
	var turns []*Turn
	for _, node := range gone {
		if node == r.options.Node {
			continue
		}
		var adopted []*Turn
		err := r.db.Write(ctx, func(tx *db.Tx) (err error) {
			adopted, err = db.All(ctx, tx, scanOnly, `UPDATE talk_turns SET node = $1, status = 'waiting'
				WHERE node = $2 AND status IN ('waiting', 'running') RETURNING `+turnColumns, r.options.Node, node)
			return err
		})
		if err != nil {
			return err
		}
		turns = append(turns, adopted...)
	}
	r.resume(ctx, turns)
	return nil
}

// broadcast notifies the other nodes that a person's messages changed.
func (r *Service) broadcast(ctx context.Context, p profile.Person) {
	r.Receive(p.Org + "\x00" + p.User)
	if r.options.Broadcast != nil {
		r.options.Broadcast(context.WithoutCancel(ctx), p.Org+"\x00"+p.User)
	}
}

// Receive handles a notification of another node.
func (r *Service) Receive(word string) {
	if id, stop := strings.CutPrefix(word, stopWord); stop {
		r.stopRunning(id)
		return
	}
	org, user, _ := strings.Cut(word, "\x00")
	r.wake(profile.Person{Org: org, User: user})
}

// changed returns a channel that is closed when a person's messages change, here or on
// another node, or when wake is called.
func (r *Service) changed(p profile.Person) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes[p] == nil {
		r.changes[p] = make(chan struct{})
	}
	return r.changes[p]
}

func (r *Service) wake(p profile.Person) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if changed := r.changes[p]; changed != nil {
		close(changed)
		delete(r.changes, p)
	}
}

// Recheck cancels turns that other nodes took over while this one was disconnected.
func (r *Service) Recheck(ctx context.Context) error {
	r.mu.Lock()
	current := slices.Collect(maps.Keys(r.active))
	r.mu.Unlock()
	for _, t := range current {
		mine, err := r.isMine(ctx, t)
		if err != nil {
			return err
		}
		if !mine {
			r.revoke(t, errTaken)
		}
	}
	return nil
}

// own registers how to cancel the agent that answers a turn, or, with nil, that it has
// returned; revoke cancels it.
func (r *Service) own(t *Turn, stop context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop == nil {
		delete(r.active, t)
		return
	}
	r.active[t] = stop
	if t.stopped { // before the agent was running
		stop(errStopped)
	}
}

func (r *Service) revoke(t *Turn, cause error) {
	r.mu.Lock()
	stop := r.active[t]
	r.mu.Unlock()
	if stop != nil {
		stop(cause)
	}
}

// follow ends a turn that another node answers with the outcome that it stored.
func (r *Service) follow(t *Turn) {
	r.work.Go(func() {
		defer r.wake(t.Message.Person) // nobody else may be waiting for a change
		for {
			changed := r.changed(t.Message.Person)
			over := false
			err := r.retryDB(r.background, func() (err error) {
				over, err = r.outcome(r.background, t)
				return err
			})
			if over && err == nil {
				return
			}
			if err != nil {
				t.end(agent.Reply{}, err)
				return
			}
			select {
			case <-changed:
			case <-time.After(pollInterval):
			case <-r.background.Done():
			}
			if r.background.Err() != nil {
				t.end(agent.Reply{}, ErrMoved)
				return
			}
		}
	})
}

var errTaken = fault.New(fault.Cancelled, "another node took over the message")
