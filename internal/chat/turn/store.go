package turn

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/store/db"
)

// insert stores a message after all others of its person. twin means that another node
// stored a message with the same key meanwhile.
func (r *Service) insert(ctx context.Context, t *Turn) (twin bool, err error) {
	message, err := json.Marshal(t.Message)
	if err != nil {
		return false, err
	}
	p := t.Message.Person
	for {
		err := r.db.Write(ctx, func(tx *db.Tx) error {
			var before, ahead int
			err := tx.QueryRow(ctx, `SELECT count(CASE WHEN status = 'waiting' THEN 1 END), count(*) FROM talk_turns
				WHERE org = $1 AND person = $2 AND status IN ('waiting', 'running')`, p.Org, p.User).Scan(&before, &ahead)
			if err != nil {
				return err
			}
			if before >= r.options.Depth {
				return tooMany(r.options.Depth)
			}
			t.Queued = ahead > 0
			_, err = tx.Exec(ctx, `INSERT INTO talk_turns (id, org, person, seq, message_key, message, status, attempts, reply, failure, created, ended, node, conversation)
				SELECT $1, $2, $3, coalesce(max(seq), 0) + 1, $4, $5, $6, 0, '', '', $7, 0, $8, $9 FROM talk_turns WHERE org = $2 AND person = $3`,
				t.ID, p.Org, p.User, t.Message.Key, string(message), conversation.Waiting, r.now().UnixMicro(), r.options.Node, t.Message.Conversation)
			if err != nil {
				return err
			}
			return r.Conversations.SaveAttachments(ctx, tx, t.ID, t.Message)
		})
		if !errors.Is(err, db.ErrUnique) {
			return false, err
		}
		// Another node stored a message of the person: this one, or one before it.
		if t.Message.Key != "" {
			if found, _, err := r.lookUp(ctx, t.Message); found != nil || err != nil {
				return found != nil, err
			}
		}
	}
}

// standing says whether a turn can begin.
type standing int

const (
	early standing = iota // earlier messages are not answered yet
	begun
	taken // another node has it, or it has ended
)

// begin counts another attempt if the turn belongs to this node and all earlier ones are
// answered. The number of earlier messages can only decrease.
func (r *Service) begin(ctx context.Context, t *Turn) (state standing, err error) {
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, `UPDATE talk_turns SET status = 'running', attempts = attempts + 1
			WHERE id = $1 AND node = $2 AND status = 'waiting' AND NOT `+othersFirst+` RETURNING attempts`, t.ID, r.options.Node).Scan(&t.attempts)
		state = begun
		if errors.Is(err, sql.ErrNoRows) { // it was stopped or taken over meanwhile, of which this node is notified
			state, err = early, nil
		}
		return err
	})
	return state, err
}

// othersFirst is whether earlier messages of a turn's person are not answered yet.
const othersFirst = `EXISTS (SELECT 1 FROM talk_turns AS before WHERE before.org = talk_turns.org
	AND before.person = talk_turns.person AND before.seq < talk_turns.seq AND before.status IN ('waiting', 'running'))`

// standing reads whether a turn can begin. Most that wait cannot, and do not have to write to
// find that out.
func (r *Service) standing(ctx context.Context, t *Turn) (standing, error) {
	var node, status string
	var wait bool
	err := r.db.QueryRow(ctx, `SELECT node, status, `+othersFirst+` FROM talk_turns WHERE id = $1`, t.ID).Scan(&node, &status, &wait)
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && (node != r.options.Node || status != conversation.Waiting):
		return taken, nil
	case err != nil || wait:
		return early, err
	}
	return begun, nil
}

// isMine reports whether a turn still belongs to this node.
func (r *Service) isMine(ctx context.Context, t *Turn) (mine bool, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		var n int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM talk_turns WHERE id = $1 AND node = $2`, t.ID, r.options.Node).Scan(&n)
		mine = n > 0
		return err
	})
	return mine, err
}

// finish stores the outcome and its consequences: the person's preferences, and the removal of
// exchanges beyond the history. If the turn belongs to another node meanwhile, it stores nothing
// and returns false.
func (r *Service) finish(ctx context.Context, t *Turn, reply agent.Reply, outcome error, ended time.Time) (kept bool, err error) {
	status, answer, why := conversation.Done, []byte(nil), []byte(nil)
	if outcome == nil {
		answer, err = json.Marshal(reply)
	} else {
		status = conversation.Failed
		why, err = json.Marshal(fault.From(outcome))
	}
	if err != nil {
		return false, err
	}
	settings, err := r.Profiles.Settings.Of(ctx, profile.Org(t.Message.Person.Org))
	if err != nil {
		return false, err
	}
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE talk_turns SET status = $1, reply = $2, failure = $3, ended = $4
			WHERE id = $5 AND node = $6 AND status = 'running' AND attempts = $7`,
			status, string(answer), string(why), ended.UnixMicro(), t.ID, r.options.Node, t.attempts)
		if kept = n > 0; err != nil || !kept {
			return err
		}
		if outcome == nil {
			if err := r.settleAnswered(ctx, tx, t); err != nil {
				return err
			}
		}
		if err := r.saveEvents(ctx, tx, t, ended); err != nil {
			return err
		}
		if err := r.options.OnOutcome(ctx, tx, t, reply, outcome); err != nil {
			return err
		}
		return conversation.ForgetBeyond(ctx, tx, t.Message.Person, t.Message.Conversation, settings.HistoryStored)
	})
	return kept, err
}

// settleAnswered updates what depends on an answer. The journal is not needed any more.
func (r *Service) settleAnswered(ctx context.Context, tx *db.Tx, t *Turn) error {
	if _, err := tx.Exec(ctx, `DELETE FROM talk_steps WHERE turn = $1`, t.ID); err != nil {
		return err
	}
	return r.Profiles.Answered(ctx, tx, t.Message.Person)
}

// lookUp finds the turn of a message by its key, which may be the id of the turn, or
// returns nil.
func (r *Service) lookUp(ctx context.Context, m conversation.Message) (t *Turn, status string, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		row := tx.QueryRow(ctx, `SELECT `+turnColumns+`, status FROM talk_turns
			WHERE org = $1 AND person = $2 AND (message_key = $3 OR id = $3)`, m.Person.Org, m.Person.User, m.Key)
		t, err = scanTurn(row, &status)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, "", nil
	}
	return t, status, err
}

// retry makes a failed turn wait again, after all other messages of its person. It keeps
// its journal, so that calls are not repeated. False means that another node was first.
func (r *Service) retry(ctx context.Context, t *Turn, m conversation.Message) (mine bool, err error) {
	m.Key = t.Message.Key
	message, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	err = r.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE talk_turns SET status = 'waiting', attempts = 0, failure = '', ended = 0, node = $1, message = $2, seq = (
				SELECT max(seq) + 1 FROM talk_turns AS others WHERE others.org = $3 AND others.person = $4)
			WHERE id = $5 AND status = 'failed'`, r.options.Node, string(message), m.Person.Org, m.Person.User, t.ID)
		mine = n > 0
		return err
	})
	t.Message, t.attempts = m, 0
	return mine, err
}

// outcome ends a turn with the stored outcome, if there is one.
func (r *Service) outcome(ctx context.Context, t *Turn) (over bool, err error) {
	var status, reply, why, events string
	err = r.db.QueryRow(ctx, `SELECT status, reply, failure, coalesce(events, '') FROM talk_turns
		LEFT JOIN talk_events ON turn = id AND talk_events.ended >= $2 WHERE id = $1`, t.ID, r.now().Add(-replayAge).UnixMicro()).
		Scan(&status, &reply, &why, &events)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, fault.New(fault.NotFound, "the message was deleted").WithHint("send it again")
	case err != nil || status != conversation.Done && status != conversation.Failed:
		return false, err
	}
	if err := t.replay(events); err != nil {
		return false, err
	}
	return true, t.settle(status, reply, why)
}

// settle ends a turn with the stored outcome.
func (t *Turn) settle(status, reply, why string) error {
	if status == conversation.Failed {
		var f fault.Error
		if err := json.Unmarshal([]byte(why), &f); err != nil {
			return err
		}
		t.end(agent.Reply{}, &f)
		return nil
	}
	var answer agent.Reply
	if err := json.Unmarshal([]byte(reply), &answer); err != nil {
		return err
	}
	t.end(answer, nil)
	return nil
}

const turnColumns = `id, org, person, seq, message_key, message, attempts`

func scanTurn(row db.Scanner, more ...any) (*Turn, error) {
	t := newTurn("", conversation.Message{})
	var message, key string
	var p profile.Person
	if err := row.Scan(append([]any{&t.ID, &p.Org, &p.User, &t.seq, &key, &message, &t.attempts}, more...)...); err != nil {
		return nil, err
	}
	err := json.Unmarshal([]byte(message), &t.Message)
	t.Message.Person, t.Message.Key = p, key
	return t, err
}

func scanOnly(row db.Scanner) (*Turn, error) { return scanTurn(row) }

// recover takes all messages that were unanswered when the server stopped.
func (r *Service) recover(ctx context.Context) error {
	var turns []*Turn
	err := r.db.Write(ctx, func(tx *db.Tx) (err error) {
		turns, err = db.All(ctx, tx, scanOnly,
			`UPDATE talk_turns SET status = 'waiting', node = '' WHERE status IN ('waiting', 'running') RETURNING `+turnColumns)
		return err
	})
	if err != nil {
		return err
	}
	r.resume(ctx, turns)
	return nil
}

// resume answers messages that were interrupted.
func (r *Service) resume(ctx context.Context, turns []*Turn) {
	if len(turns) == 0 {
		return
	}
	slices.SortFunc(turns, func(a, b *Turn) int { return cmp.Compare(a.seq, b.seq) })
	r.options.Log.InfoContext(ctx, "answering interrupted messages", "count", len(turns))
	r.mu.Lock()
	told := r.onResume
	if told == nil {
		r.resumed = append(r.resumed, turns...)
	}
	r.mu.Unlock()
	for _, t := range turns {
		r.register(t)
		r.work.Go(func() { r.run(r.background, t) })
	}
	for _, t := range turns {
		if told != nil {
			told(t)
		}
	}
}
