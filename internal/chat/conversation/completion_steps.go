package conversation

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/store/db"
)

// A client that is asked to call its own tools is sent only these calls. What the agent
// did itself before, in the same answer, is stored here, and put in its place when the
// client continues with the results.

// stepsAge is how long a client can take to continue and still have the whole
// conversation. Later the model sees what the client sends.
const stepsAge = 7 * 24 * time.Hour

// saveSteps stores the steps of a turn that ended with calls of the client's tools. The
// calls get new ids, because those of some providers are not unique.
func (r *Service) saveSteps(ctx context.Context, p Person, reply *agent.Reply) error {
	renameCalls(reply)
	steps, err := json.Marshal(reply.Steps)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "encode the steps of an answer")
	}
	now := r.now()
	return r.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM talk_client_calls WHERE created < $1`, now.Add(-stepsAge).UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO talk_client_calls (id, org, person, steps, created) VALUES ($1, $2, $3, $4, $5)`,
			reply.Calls[0].ID, p.Org, p.User, string(steps), now.UnixMicro())
		return err
	})
}

// renameCalls gives the calls of the client's tools ids of ours, in the steps too.
func renameCalls(reply *agent.Reply) {
	ids := map[string]string{}
	for i := range reply.Calls {
		id := "call_" + rand.Text()
		ids[reply.Calls[i].ID], reply.Calls[i].ID = id, id
	}
	for _, m := range reply.Steps {
		for i, b := range m.Blocks {
			if b.Use == nil {
				continue
			}
			use := *b.Use
			if id, theirs := ids[use.ID]; theirs {
				use.ID = id
			}
			if !json.Valid(use.Input) { // the model's mistake, of which its result says so
				use.Input = json.RawMessage(`{}`)
			}
			m.Blocks[i].Use = &use
		}
	}
}

// loadSteps returns the stored steps before a call, or nil.
func (r *Service) loadSteps(ctx context.Context, p Person, call string) (steps []llm.Message, err error) {
	var text string
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT steps FROM talk_client_calls WHERE id = $1 AND org = $2 AND person = $3`, call, p.Org, p.User).Scan(&text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &steps)
	}
	return steps, err
}

// withSteps returns a client's conversation as the model saw it: with the stored steps,
// one message after another of alternating roles, and a result for each call.
func (r *Service) withSteps(ctx context.Context, p Person, messages []llm.Message) ([]llm.Message, error) {
	var all joined
	for _, m := range messages {
		steps := []llm.Message{m}
		if uses := (llm.Answer{Blocks: m.Blocks}).Uses(); len(uses) > 0 {
			stored, err := r.loadSteps(ctx, p, uses[0].ID)
			if err != nil {
				return nil, err
			}
			if stored != nil {
				steps = stored
			}
		}
		for _, step := range steps {
			if err := all.add(step); err != nil {
				return nil, err
			}
		}
	}
	all.answerOpen()
	return all.messages, nil
}

// joined is a conversation in which messages of one role are joined.
type joined struct {
	messages []llm.Message
	open     []string // ids of calls without a result yet
}

func (j *joined) add(m llm.Message) error {
	for _, b := range m.Blocks {
		switch {
		case b.Result != nil:
			if !j.close(b.Result.ID) {
				return fault.New(fault.InvalidParams, "the result of the tool call %q does not follow the call", b.Result.ID).
					WithHint("send the assistant's message with tool_calls before the results")
			}
		case len(j.open) > 0 && b.Use == nil && m.Role == llm.User: // it goes on without the results
			j.answerOpen()
		}
		if b.Use != nil {
			j.open = append(j.open, b.Use.ID)
		}
		j.put(m.Role, b)
	}
	return nil
}

// close reports whether a call is open, and closes it.
func (j *joined) close(id string) bool {
	for i, open := range j.open {
		if open == id {
			j.open = append(j.open[:i], j.open[i+1:]...)
			return true
		}
	}
	return false
}

// answerOpen adds results of calls for which the client sent none, because providers
// refuse conversations without.
func (j *joined) answerOpen() {
	for _, id := range j.open {
		j.put(llm.User, llm.Block{Result: &llm.Result{ID: id, Text: "no result was given", Failed: true}})
	}
	j.open = nil
}

func (j *joined) put(role llm.Role, b llm.Block) {
	if len(j.messages) == 0 && role == llm.Assistant { // providers want a message of the user first
		j.messages = append(j.messages, llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: "(The conversation begins.)"}}})
	}
	if n := len(j.messages); n > 0 && j.messages[n-1].Role == role {
		j.messages[n-1].Blocks = append(j.messages[n-1].Blocks, b)
		return
	}
	j.messages = append(j.messages, llm.Message{Role: role, Blocks: []llm.Block{b}})
}
