package conversation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
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

// List lists a person's conversations, the most recently used first, and then those
// that others share with the caller. The ids of these are ORG/USER/ID.
func (s *Store) List(ctx context.Context, p profile.Person) ([]Conversation, error) {
	list, err := s.summaries(ctx, p)
	if err != nil {
		return nil, err
	}
	shared, err := s.shared(ctx, p)
	return append(list, shared...), err
}

// summaries lists a person's conversations, or only the one with an id.
func (s *Store) summaries(ctx context.Context, p profile.Person, only ...string) (list []Conversation, err error) {
	which, args := "", []any{p.Org, p.User, maxConversations}
	if len(only) == 1 {
		which, args = " AND conversation = $4", append(args, only[0])
	}
	return db.Find(ctx, s.db, scanConversation, `SELECT own.conversation, own.messages, own.updated, own.busy, first.message FROM (
				SELECT conversation, count(*) AS messages, max(created) AS updated, min(seq) AS first, max(seq) AS latest,
					count(CASE WHEN status IN ('waiting', 'running') THEN 1 END) AS busy
				FROM talk_turns WHERE org = $1 AND person = $2`+which+` GROUP BY conversation) AS own
			JOIN talk_turns AS first ON first.org = $1 AND first.person = $2 AND first.seq = own.first
			ORDER BY own.latest DESC LIMIT $3`, args...)
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
func (s *Store) Records(ctx context.Context, p profile.Person, conversation string, limit int) (records []Record, err error) {
	return db.Find(ctx, s.db, scanRecord, `SELECT id, message, status, reply, failure, created, ended FROM (
				SELECT * FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 ORDER BY seq DESC LIMIT $4) AS latest
			ORDER BY seq`, p.Org, p.User, conversation, limit)
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
	case Done:
		err = json.Unmarshal([]byte(reply), &c.Reply)
	case Failed:
		var f fault.Error
		if err = json.Unmarshal([]byte(why), &f); err == nil {
			c.Err = &f
		}
	}
	return c, err
}

// ForgetConversation removes one conversation of a person and calls
// Options.OnForgetConversation, and returns how many messages it removed. One with a
// message that is not answered yet is not removed.
func (s *Store) ForgetConversation(ctx context.Context, p profile.Person, conversation string) (gone int64, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var busy int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status IN ('waiting', 'running')`,
			p.Org, p.User, conversation).Scan(&busy)
		if err != nil {
			return err
		}
		if busy > 0 {
			return fault.New(fault.Conflict, "a message of this conversation is not answered yet").WithHint("wait for the answer or stop it, then delete the conversation")
		}
		gone, err = tx.Exec(ctx, `DELETE FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3`, p.Org, p.User, conversation)
		return err
	})
	if err == nil {
		err = s.endShares(ctx, p, conversation)
	}
	if err == nil && gone > 0 && s.options.OnForgetConversation != nil {
		err = s.options.OnForgetConversation(asServer(ctx), p, conversation)
	}
	return gone, err
}

// asServer is a context of the server itself, which removes what is left of a conversation
// whoever deletes it.
func asServer(ctx context.Context) context.Context {
	return principal.With(context.WithoutCancel(ctx), principal.Local())
}

// Entry is a message and its answer.
type Entry struct {
	UserMessage       string    `json:"user_message"`
	AssistantResponse string    `json:"assistant_response"`
	Timestamp         time.Time `json:"timestamp"`
	Conversation      string    `json:"conversation,omitempty"` // chat_id and thread_id, if it has any

	away []string // the Reply's
}

// History returns limit of a person's answered messages from offset on, the oldest
// first, and how many there are.
func (s *Store) History(ctx context.Context, p profile.Person, limit, offset int) (entries []Entry, total int, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, `SELECT count(*) FROM talk_turns WHERE org = $1 AND person = $2 AND status = $3`, p.Org, p.User, Done).Scan(&total)
		if err != nil {
			return err
		}
		entries, err = db.All(ctx, tx, scanEntry, `SELECT message, reply, ended FROM talk_turns
			WHERE org = $1 AND person = $2 AND status = $3 ORDER BY seq LIMIT $4 OFFSET $5`, p.Org, p.User, Done, limit, offset)
		return err
	})
	return entries, total, err
}

// Latest returns the last exchanges of a conversation before the current message, the
// oldest first.
func (s *Store) Latest(ctx context.Context, p profile.Person, conversation string, count int) (exchanges []agent.Exchange, err error) {
	var entries []Entry
	entries, err = db.Find(ctx, s.db, scanEntry, `SELECT message, reply, ended FROM talk_turns
			WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4 ORDER BY seq DESC LIMIT $5`, p.Org, p.User, conversation, Done, count)
	for _, e := range slices.Backward(entries) {
		exchanges = append(exchanges, agent.Exchange{User: e.UserMessage, Assistant: e.AssistantResponse, At: e.Timestamp, Away: e.away})
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
	return Entry{m.described(), answer.Text(), time.UnixMicro(ended).UTC(), m.Conversation, answer.Away}, nil
}

// Forget removes a person's history and calls Options.OnForget, and returns how many
// exchanges it removed. Messages that are still waiting are answered.
func (s *Store) Forget(ctx context.Context, p profile.Person) (gone int64, err error) {
	own, err := s.summaries(ctx, p)
	if err != nil {
		return 0, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		gone, err = tx.Exec(ctx, `DELETE FROM talk_turns WHERE org = $1 AND person = $2 AND status IN ('done', 'failed')`, p.Org, p.User)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM talk_client_calls WHERE org = $1 AND person = $2`, p.Org, p.User)
		return err
	})
	for i := 0; i < len(own) && err == nil; i++ {
		err = s.endShares(ctx, p, own[i].ID)
	}
	if err == nil && s.options.OnForget != nil {
		err = s.options.OnForget(asServer(ctx), p)
	}
	return gone, err
}

// maxConversations is how many conversations of a person are stored.
const maxConversations = 200

// ForgetBeyond removes finished turns of a conversation that are older than the latest
// ones, and the conversations that were not continued for the longest time.
func ForgetBeyond(ctx context.Context, tx *db.Tx, p profile.Person, conversation string, keep int) error {
	for _, status := range []string{Done, Failed} {
		_, err := tx.Exec(ctx, `DELETE FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4 AND seq <= (
			SELECT coalesce(max(seq), 0) FROM (
				SELECT seq FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4 ORDER BY seq DESC LIMIT 1 OFFSET $5
			) AS beyond)`, p.Org, p.User, conversation, status, keep)
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM talk_turns WHERE org = $1 AND person = $2 AND status IN ('done', 'failed') AND conversation IN (
		SELECT conversation FROM talk_turns WHERE org = $1 AND person = $2 GROUP BY conversation ORDER BY max(seq) DESC LIMIT 1000000 OFFSET $3)`,
		p.Org, p.User, maxConversations)
	return err
}

// Copy makes a conversation of a person's own from the answered messages of another: of one
// of theirs, or of one that is shared with the caller to use it. It returns the id of the
// copy, which has its own images, sounds and files, and no Lua variables.
func (s *Store) Copy(ctx context.Context, p profile.Person, id string) (copied string, err error) {
	from, err := s.Access(ctx, p, id)
	if err != nil {
		return "", err
	}
	if from.Owner != "" && !from.Shared.Permits(principal.Use) {
		return "", fault.New(fault.Denied, "the conversation belongs to %s, who shares it with you to %s", from.Owner, from.Shared).
			WithHint("ask %s to share it with you to use", from.Owner)
	}
	settings, err := s.Profiles.Settings.Of(ctx, profile.Org(p.Org))
	if err != nil {
		return "", err
	}
	latest, err := s.latestAnswered(ctx, from)
	if err != nil {
		return "", err
	}
	copied = strings.ToLower(rand.Text()[:16])
	if s.options.OnCopy != nil { // before it exists: it must never forget which data it has
		if err := s.options.OnCopy(ctx, from.Person, from.ID, p, copied); err != nil {
			return "", err
		}
	}
	for {
		err = s.db.Write(ctx, func(tx *db.Tx) error {
			if err := s.copyTurns(ctx, tx, from, latest, p, copied); err != nil {
				return err
			}
			return ForgetBeyond(ctx, tx, p, copied, settings.HistoryStored)
		})
		if !errors.Is(err, db.ErrUnique) { // another node stored a message of the person meanwhile
			return copied, err
		}
	}
}

// answeredTurn is a turn as it is copied.
type answeredTurn struct {
	id, message, reply string
	created, ended     int64
}

// latestAnswered returns the position of the latest answered message of a conversation.
func (s *Store) latestAnswered(ctx context.Context, from Access) (seq int64, err error) {
	err = s.db.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4`,
		from.Person.Org, from.Person.User, from.ID, Done).Scan(&seq)
	if err == nil && seq == 0 {
		err = fault.New(fault.NotFound, "no conversation %s with an answer", from.ID).WithHint("GET /api/v1/orgs/ORG/users/USER/conversations lists those that you can read")
	}
	return seq, err
}

// copyTurns copies the answered messages of a conversation, up to a position, after all
// others of a person.
func (s *Store) copyTurns(ctx context.Context, tx *db.Tx, from Access, latest int64, to profile.Person, copied string) error {
	const answered = ` FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4 AND seq <= $5`
	which := []any{from.Person.Org, from.Person.User, from.ID, Done, latest}
	turns, err := db.All(ctx, tx, func(row db.Scanner) (t answeredTurn, err error) {
		return t, row.Scan(&t.id, &t.message, &t.reply, &t.created, &t.ended)
	}, `SELECT id, message, reply, created, ended`+answered+` ORDER BY seq`, which...)
	if err != nil {
		return err
	}
	var more StoredMedia
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(length(data)), 0) FROM talk_media WHERE turn IN (SELECT id`+answered+`)`, which...).Scan(&more.Count, &more.Bytes)
	if err != nil {
		return err
	}
	if err := s.checkSpace(ctx, tx, to, more); err != nil {
		return err
	}
	for _, t := range turns {
		if err := t.insertCopy(ctx, tx, to, copied); err != nil {
			return err
		}
	}
	return nil
}

// insertCopy stores a turn again, with its images, sounds and files.
func (t answeredTurn) insertCopy(ctx context.Context, tx *db.Tx, to profile.Person, conversation string) error {
	message, reply, err := t.forSomebodyElse(conversation)
	if err != nil {
		return err
	}
	id := "msg_" + rand.Text()
	_, err = tx.Exec(ctx, `INSERT INTO talk_turns (id, org, person, seq, message_key, message, status, attempts, reply, failure, created, ended, node, conversation)
		SELECT $1, $2, $3, coalesce(max(seq), 0) + 1, '', $4, $5, 1, $6, '', $7, $8, '', $9 FROM talk_turns WHERE org = $2 AND person = $3`,
		id, to.Org, to.User, message, Done, reply, t.created, t.ended, conversation)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO talk_media (turn, id, name, mime, data) SELECT $1, id, name, mime, data FROM talk_media WHERE turn = $2`, id, t.id)
	return err
}

// forSomebodyElse returns the message and the answer without what concerns only whoever
// sent the message: rights, callbacks, traces, cost.
func (t answeredTurn) forSomebodyElse(conversation string) (message, reply string, err error) {
	var m Message
	if err := json.Unmarshal([]byte(t.message), &m); err != nil {
		return "", "", err
	}
	var answer agent.Reply
	if err := json.Unmarshal([]byte(t.reply), &answer); err != nil {
		return "", "", err
	}
	m = Message{Conversation: conversation, Model: m.Model, Text: m.Text, Attachments: m.Attachments, Audio: m.Audio, Transcript: m.Transcript}
	answer.RequestID, answer.Trace, answer.Usage = "", "", llm.Usage{}
	text, err := json.Marshal(m)
	if err != nil {
		return "", "", err
	}
	said, err := json.Marshal(answer)
	return string(text), string(said), err
}
