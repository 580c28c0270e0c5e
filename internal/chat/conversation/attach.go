package conversation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/store/db"
)

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
