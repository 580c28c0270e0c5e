package conversation

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Conversation is one of a person's conversations, in a list.
type Conversation struct {
	ID       string    `json:"id"`    // chat_id and thread_id; "" for messages without them
	Title    string    `json:"title"` // the beginning of its first message
	Messages int       `json:"messages"`
	Updated  time.Time `json:"updated_at"`
	Busy     bool      `json:"busy"` // a message is not answered yet

	Owner  string          `json:"owner,omitempty"`  // name of somebody else who shares it
	Shared principal.Level `json:"shared,omitempty"` // what they permit
}

// Conversations lists a person's conversations, the most recently used first, and then those
// that others share with the caller. The ids of these are ORG/USER/ID.
func (r *Service) Conversations(ctx context.Context, p Person) ([]Conversation, error) {
	list, err := r.summaries(ctx, p)
	if err != nil {
		return nil, err
	}
	shared, err := r.shared(ctx, p)
	return append(list, shared...), err
}

// summaries lists a person's conversations, or only the one with an id.
func (r *Service) summaries(ctx context.Context, p Person, only ...string) (list []Conversation, err error) {
	which, args := "", []any{p.Org, p.User, maxConversations}
	if len(only) == 1 {
		which, args = " AND conversation = $4", append(args, only[0])
	}
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, scanConversation, `SELECT own.conversation, own.messages, own.updated, own.busy, first.message FROM (
				SELECT conversation, count(*) AS messages, max(created) AS updated, min(seq) AS first, max(seq) AS latest,
					count(CASE WHEN status IN ('waiting', 'running') THEN 1 END) AS busy
				FROM talk_turns WHERE org = $1 AND person = $2`+which+` GROUP BY conversation) AS own
			JOIN talk_turns AS first ON first.org = $1 AND first.person = $2 AND first.seq = own.first
			ORDER BY own.latest DESC LIMIT $3`, args...)
		return err
	})
	return list, err
}

const longestTitle = 100

func scanConversation(row db.Scanner) (c Conversation, err error) {
	var message string
	var updated, busy int64
	if err := row.Scan(&c.ID, &c.Messages, &updated, &busy, &message); err != nil {
		return c, err
	}
	var m Message
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return c, err
	}
	title, _, _ := strings.Cut(strings.TrimSpace(m.described()), "\n")
	c.Title, c.Updated, c.Busy = redact.Cut(title, longestTitle), time.UnixMicro(updated).UTC(), busy > 0
	return c, nil
}

// Record is a message and what is known of its answer.
type Record struct {
	ID      string
	Message Message
	Status  string // waiting, running, done or failed
	Created time.Time
	Ended   time.Time // zero if it has no outcome
	Reply   agent.Reply
	Err     error // of one that failed
}

// Records returns the latest messages of a conversation, the oldest first.
func (r *Service) Records(ctx context.Context, p Person, conversation string, limit int) (records []Record, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		records, err = db.All(ctx, tx, scanRecord, `SELECT id, message, status, reply, failure, created, ended FROM (
				SELECT * FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 ORDER BY seq DESC LIMIT $4) AS latest
			ORDER BY seq`, p.Org, p.User, conversation, limit)
		return err
	})
	return records, err
}

func scanRecord(row db.Scanner) (c Record, err error) {
	var message, reply, why string
	var created, ended int64
	if err := row.Scan(&c.ID, &message, &c.Status, &reply, &why, &created, &ended); err != nil {
		return c, err
	}
	if err := json.Unmarshal([]byte(message), &c.Message); err != nil {
		return c, err
	}
	c.Created = time.UnixMicro(created).UTC()
	if ended > 0 {
		c.Ended = time.UnixMicro(ended).UTC()
	}
	switch c.Status {
	case done:
		err = json.Unmarshal([]byte(reply), &c.Reply)
	case failed:
		var f failure
		if err = json.Unmarshal([]byte(why), &f); err == nil {
			c.Err = f.err()
		}
	}
	return c, err
}

// ForgetConversation removes one conversation of a person and calls
// Options.OnForgetConversation, and returns how many messages it removed. One with a
// message that is not answered yet is not removed.
func (r *Service) ForgetConversation(ctx context.Context, p Person, conversation string) (gone int64, err error) {
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		var busy int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status IN ('waiting', 'running')`,
			p.Org, p.User, conversation).Scan(&busy)
		if err != nil {
			return err
		}
		if busy > 0 {
			return fault.New(fault.Conflict, "a message of this conversation is not answered yet").WithHint("wait for the answer or stop it, then delete the conversation")
		}
		result, err := tx.Exec(ctx, `DELETE FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3`, p.Org, p.User, conversation)
		if err != nil {
			return err
		}
		gone, err = result.RowsAffected()
		return err
	})
	if err == nil {
		err = r.endShares(ctx, p, conversation)
	}
	if err == nil && gone > 0 && r.options.OnForgetConversation != nil {
		err = r.options.OnForgetConversation(r.background, p, conversation) //nolint:contextcheck // done by the service itself, as turns are
	}
	return gone, err
}
