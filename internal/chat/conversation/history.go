package conversation

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/store/db"
)

// Entry is a message and its answer.
type Entry struct {
	UserMessage       string    `json:"user_message"`
	AssistantResponse string    `json:"assistant_response"`
	Timestamp         time.Time `json:"timestamp"`
	Conversation      string    `json:"conversation,omitempty"` // chat_id and thread_id, if it has any
}

// History returns limit of a person's answered messages from offset on, the oldest
// first, and how many there are.
func (r *Service) History(ctx context.Context, p Person, limit, offset int) (entries []Entry, total int, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, `SELECT count(*) FROM talk_turns WHERE org = $1 AND person = $2 AND status = $3`, p.Org, p.User, done).Scan(&total)
		if err != nil {
			return err
		}
		entries, err = db.All(ctx, tx, scanEntry, `SELECT message, reply, ended FROM talk_turns
			WHERE org = $1 AND person = $2 AND status = $3 ORDER BY seq LIMIT $4 OFFSET $5`, p.Org, p.User, done, limit, offset)
		return err
	})
	return entries, total, err
}

// latest returns the last exchanges of a conversation before the current message, the
// oldest first.
func (r *Service) latest(ctx context.Context, p Person, conversation string, count int) (exchanges []agent.Exchange, err error) {
	var entries []Entry
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		entries, err = db.All(ctx, tx, scanEntry, `SELECT message, reply, ended FROM talk_turns
			WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4 ORDER BY seq DESC LIMIT $5`, p.Org, p.User, conversation, done, count)
		return err
	})
	for _, e := range slices.Backward(entries) {
		exchanges = append(exchanges, agent.Exchange{User: e.UserMessage, Assistant: e.AssistantResponse, At: e.Timestamp})
	}
	return exchanges, err
}

func scanEntry(row db.Scanner) (e Entry, err error) {
	var message, reply string
	var ended int64
	if err := row.Scan(&message, &reply, &ended); err != nil {
		return e, err
	}
	var m Message
	var answer agent.Reply
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return e, err
	}
	if err := json.Unmarshal([]byte(reply), &answer); err != nil {
		return e, err
	}
	return Entry{m.described(), answer.Text(), time.UnixMicro(ended).UTC(), m.Conversation}, nil
}

// Forget removes a person's history and calls Options.OnForget, and returns how many
// exchanges it removed. Messages that are still waiting are answered.
func (r *Service) Forget(ctx context.Context, p Person) (gone int64, err error) {
	own, err := r.summaries(ctx, p)
	if err != nil {
		return 0, err
	}
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `DELETE FROM talk_turns WHERE org = $1 AND person = $2 AND status IN ('done', 'failed')`, p.Org, p.User)
		if err != nil {
			return err
		}
		if gone, err = result.RowsAffected(); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM talk_client_calls WHERE org = $1 AND person = $2`, p.Org, p.User)
		return err
	})
	for i := 0; i < len(own) && err == nil; i++ {
		err = r.endShares(ctx, p, own[i].ID)
	}
	if err == nil && r.options.OnForget != nil {
		err = r.options.OnForget(r.background, p) //nolint:contextcheck // done by the service itself, as turns are
	}
	return gone, err
}
