package talk

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/agent"
	"github.com/luanette/luanette/internal/db"
	"github.com/luanette/luanette/internal/fault"
)

// The states of a turn on disk.
const (
	waiting = "waiting"
	running = "running"
	done    = "done"
	failed  = "failed"
)

// failure is an error as it is kept.
type failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
}

func failureOf(err error) failure {
	return failure{Code: fault.CodeOf(err), Message: err.Error(), Hint: fault.HintOf(err)}
}

func (f failure) err() error {
	err := fault.New(f.Code, "%s", f.Message)
	if f.Hint != "" {
		return err.WithHint("%s", f.Hint)
	}
	return err
}

// insert stores a message behind all others of its person.
func (r *Room) insert(ctx context.Context, t *Turn) error {
	message, err := json.Marshal(t.Message)
	if err != nil {
		return err
	}
	p := t.Message.Person
	return r.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO talk_turns (id, org, person, seq, message_key, message, status, attempts, reply, failure, created, ended)
			SELECT $1, $2, $3, coalesce(max(seq), 0) + 1, $4, $5, $6, 0, '', '', $7, 0 FROM talk_turns WHERE org = $2 AND person = $3`,
			t.ID, p.Org, p.User, t.Message.Key, string(message), waiting, r.now().UnixMicro())
		return err
	})
}

// begin notes another attempt.
func (r *Room) begin(ctx context.Context, t *Turn) error {
	t.attempts++
	return r.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE talk_turns SET status = $1, attempts = $2 WHERE id = $3`, running, t.attempts, t.ID)
		return err
	})
}

// finish stores the outcome, and with it all that follows from it: the person is
// known now, has used so much, and what is older than the history goes.
func (r *Room) finish(ctx context.Context, t *Turn, reply agent.Reply, outcome error, ended time.Time) error {
	status, answer, why := done, []byte(nil), []byte(nil)
	var err error
	if outcome == nil {
		answer, err = json.Marshal(reply)
	} else {
		status = failed
		why, err = json.Marshal(failureOf(outcome))
	}
	if err != nil {
		return err
	}
	settings, err := r.Settings(ctx, t.Message.Person.Org)
	if err != nil {
		return err
	}
	return r.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE talk_turns SET status = $1, reply = $2, failure = $3, ended = $4 WHERE id = $5`,
			status, string(answer), string(why), ended.UnixMicro(), t.ID)
		if err != nil {
			return err
		}
		if outcome == nil {
			if err := r.met(ctx, tx, t.Message.Person); err != nil {
				return err
			}
		}
		if err := countUsage(ctx, tx, t.Message.Person, reply, ended); err != nil {
			return err
		}
		return forgetBeyond(ctx, tx, t.Message.Person, settings.HistoryStored)
	})
}

// forgetBeyond removes finished turns that are older than the latest ones.
func forgetBeyond(ctx context.Context, tx *db.Tx, p Person, keep int) error {
	for _, status := range []string{done, failed} {
		_, err := tx.Exec(ctx, `DELETE FROM talk_turns WHERE org = $1 AND person = $2 AND status = $3 AND seq <= (
			SELECT coalesce(max(seq), 0) FROM (
				SELECT seq FROM talk_turns WHERE org = $1 AND person = $2 AND status = $3 ORDER BY seq DESC LIMIT 1 OFFSET $4
			) AS beyond)`, p.Org, p.User, status, keep)
		if err != nil {
			return err
		}
	}
	return nil
}

// finished returns the turn of a message that was answered before, or nil.
func (r *Room) finished(ctx context.Context, m Message) (t *Turn, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		var id, status, reply, why string
		err := tx.QueryRow(ctx, `SELECT id, status, reply, failure FROM talk_turns WHERE org = $1 AND person = $2 AND message_key = $3`,
			m.Person.Org, m.Person.User, m.Key).Scan(&id, &status, &reply, &why)
		if err != nil {
			return err
		}
		t = newTurn(id, m)
		return t.settle(status, reply, why)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return t, err
}

// settle ends a turn with the outcome that was stored.
func (t *Turn) settle(status, reply, why string) error {
	if status == failed {
		var f failure
		if err := json.Unmarshal([]byte(why), &f); err != nil {
			return err
		}
		t.end(agent.Reply{}, f.err())
		return nil
	}
	var answer agent.Reply
	if err := json.Unmarshal([]byte(reply), &answer); err != nil {
		return err
	}
	t.end(answer, nil)
	return nil
}

// recover puts the messages back into their lines that were not answered when the
// house was last left.
func (r *Room) recover(ctx context.Context) error {
	var turns []*Turn
	err := r.db.Read(ctx, func(tx *db.Tx) (err error) {
		turns, err = db.All(ctx, tx, func(row db.Scanner) (*Turn, error) {
			t := newTurn("", Message{})
			var message string
			var p Person
			var key string
			if err := row.Scan(&t.ID, &p.Org, &p.User, &key, &message, &t.attempts); err != nil {
				return nil, err
			}
			err := json.Unmarshal([]byte(message), &t.Message)
			t.Message.Person, t.Message.Key = p, key
			return t, err
		}, `SELECT id, org, person, message_key, message, attempts FROM talk_turns WHERE status IN ('waiting', 'running') ORDER BY org, person, seq`)
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range turns {
		l := r.enter(t.Message.Person)
		l.mu.Lock()
		r.join(l, t)
		l.mu.Unlock()
		r.leave(t.Message.Person, l)
	}
	r.resumed = turns
	if len(turns) > 0 {
		r.options.Log.InfoContext(ctx, "answering messages that were interrupted", "count", len(turns))
	}
	return nil
}
