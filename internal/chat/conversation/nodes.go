package conversation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/store/db"
)

// Several nodes may share a database. A message belongs to the node that accepted
// it, until that node is gone: then another adopts it. Which is decided by the row
// alone, so a node that was only cut off finds out when it comes to store its
// answer, and gives the other's instead.

// look is how often a node looks for itself at what others should have told it.
const look = time.Second

// Owners are the nodes that messages wait for.
func (r *Service) Owners(ctx context.Context) (nodes []string, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		nodes, err = db.All(ctx, tx, func(row db.Scanner) (node string, err error) { return node, row.Scan(&node) },
			`SELECT DISTINCT node FROM talk_turns WHERE status IN ('waiting', 'running')`)
		return err
	})
	return nodes, err
}

// Adopt makes the messages of nodes that are gone this one's own.
func (r *Service) Adopt(ctx context.Context, gone []string) error {
	var turns []*Turn
	for _, node := range gone {
		if node == r.options.Node {
			continue
		}
		var adopted []*Turn
		err := r.db.Write(ctx, func(tx *db.Tx) (err error) {
			adopted, err = db.All(ctx, tx, scanTurn, `UPDATE talk_turns SET node = $1, status = 'waiting'
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

// tell tells the other nodes that something happened to a person's messages.
func (r *Service) tell(ctx context.Context, p Person) {
	r.Receive(p.Org + "\x00" + p.User)
	if r.options.Broadcast != nil {
		r.options.Broadcast(context.WithoutCancel(ctx), p.Org+"\x00"+p.User)
	}
}

// Receive takes a word that another node told.
func (r *Service) Receive(word string) {
	org, user, _ := strings.Cut(word, "\x00")
	r.mu.Lock()
	l := r.lines[Person{Org: org, User: user}]
	r.mu.Unlock()
	if l != nil {
		l.tell()
	}
}

// Recheck calls off what other nodes have taken over while this one was cut off.
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

// own notes how the agent that answers a turn is stopped, or, with nil, that it
// has returned; revoke stops it.
func (r *Service) own(t *Turn, stop context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop == nil {
		delete(r.active, t)
		return
	}
	r.active[t] = stop
}

func (r *Service) revoke(t *Turn, cause error) {
	r.mu.Lock()
	stop := r.active[t]
	r.mu.Unlock()
	if stop != nil {
		stop(cause)
	}
}

// follow ends a turn that is answered elsewhere with the outcome that is stored
// there.
func (r *Service) follow(t *Turn) {
	p := t.Message.Person
	l := r.enter(p)
	r.work.Go(func() {
		defer r.leave(p, l)
		for {
			news := l.later()
			over := false
			err := r.persist(r.background, func() (err error) {
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
			case <-news:
			case <-time.After(look):
			case <-r.background.Done():
			}
			if r.background.Err() != nil {
				t.end(agent.Reply{}, errKept)
				return
			}
		}
	})
}

var errTaken = fault.New(fault.Cancelled, "another node has taken the message over")
