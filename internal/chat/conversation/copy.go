package conversation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Inheritor is an Agent that remembers what conversations have read.
type Inheritor interface {
	// Inherit makes a conversation remember what another has read.
	Inherit(ctx context.Context, from Person, id string, to Person, copied string) error
}

// Copy makes a conversation of a person's own from the answered messages of another: of one
// of theirs, or of one that is shared with the caller to use it. It returns the id of the
// copy, which has its own images, sounds and files, and no Lua variables.
func (r *Service) Copy(ctx context.Context, p Person, id string) (copied string, err error) {
	from, err := r.Access(ctx, p, id)
	if err != nil {
		return "", err
	}
	if from.Owner != "" && !from.Shared.Permits(principal.Use) {
		return "", fault.New(fault.Denied, "the conversation belongs to %s, who shares it with you to %s", from.Owner, from.Shared).
			WithHint("ask %s to share it with you to use", from.Owner)
	}
	settings, err := r.Settings(ctx, p.Org)
	if err != nil {
		return "", err
	}
	latest, err := r.latestAnswered(ctx, from)
	if err != nil {
		return "", err
	}
	copied = strings.ToLower(rand.Text()[:16])
	if inheritor, ok := r.agent.(Inheritor); ok { // before it exists: it must never forget which data it has
		if err := inheritor.Inherit(ctx, from.Person, from.ID, p, copied); err != nil {
			return "", err
		}
	}
	for {
		err = r.db.Write(ctx, func(tx *db.Tx) error {
			if err := r.copyTurns(ctx, tx, from, latest, p, copied); err != nil {
				return err
			}
			return forgetBeyond(ctx, tx, Message{Person: p, Conversation: copied}, settings.HistoryStored)
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
func (r *Service) latestAnswered(ctx context.Context, from Access) (seq int64, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4`,
			from.Person.Org, from.Person.User, from.ID, done).Scan(&seq)
	})
	if err == nil && seq == 0 {
		err = fault.New(fault.NotFound, "no conversation %s with an answer", from.ID).WithHint("GET /api/v1/orgs/ORG/users/USER/conversations lists those that you can read")
	}
	return seq, err
}

// copyTurns copies the answered messages of a conversation, up to a position, after all
// others of a person.
func (r *Service) copyTurns(ctx context.Context, tx *db.Tx, from Access, latest int64, to Person, copied string) error {
	const answered = ` FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3 AND status = $4 AND seq <= $5`
	which := []any{from.Person.Org, from.Person.User, from.ID, done, latest}
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
	if err := r.checkSpace(ctx, tx, to, more); err != nil {
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
func (t answeredTurn) insertCopy(ctx context.Context, tx *db.Tx, to Person, conversation string) error {
	message, reply, err := t.forSomebodyElse(conversation)
	if err != nil {
		return err
	}
	id := "msg_" + rand.Text()
	_, err = tx.Exec(ctx, `INSERT INTO talk_turns (id, org, person, seq, message_key, message, status, attempts, reply, failure, created, ended, node, conversation)
		SELECT $1, $2, $3, coalesce(max(seq), 0) + 1, '', $4, $5, 1, $6, '', $7, $8, '', $9 FROM talk_turns WHERE org = $2 AND person = $3`,
		id, to.Org, to.User, message, done, reply, t.created, t.ended, conversation)
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
