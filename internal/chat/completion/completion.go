// Package completion answers conversations that a client keeps itself and sends as a whole, as
// OpenAI's API has them. Of these only the agent's steps before a call of the client's tools are
// stored.
package completion

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/store/db"
)

// Completion is a conversation that the client keeps itself and sends as a whole. The
// last message is to be answered.
type Completion struct {
	ID           string // of the answer
	RequestID    string
	Person       profile.Person
	Client       string
	Mode         string // one of the organisation's; empty means the one that the person has chosen
	Messages     []llm.Message
	Instructions string // of the client
	Tools        agent.ClientTools
	MaxTokens    int
}

// Service answers completions.
type Service struct {
	turns *turn.Service
	db    *db.DB
}

// New returns the service that answers with the agent of turns, and stores steps in a database
// with the tables of package conversation.
func New(turns *turn.Service, database *db.DB) *Service { return &Service{turns, database} }

// Modes lists the modes of an organisation that a completion can have.
func (s *Service) Modes(ctx context.Context, org string) ([]string, error) {
	return s.turns.Profiles.Modes.Names(ctx, org)
}

// Complete answers a conversation. Completions of a person have no order and are not
// repeated after a crash: the client has the conversation and can send it again. Ending
// ctx ends the answer.
func (s *Service) Complete(ctx context.Context, c Completion, emit func(agent.Event)) (agent.Reply, error) {
	reply, err := s.turns.Answer(ctx, c.ID, c.Person, func(ctx context.Context) (agent.Request, error) { return s.request(ctx, c) }, emit)
	if err != nil || len(reply.Calls) == 0 {
		return reply, err
	}
	return reply, s.saveSteps(ctx, c.Person, &reply)
}

// request gathers what the agent needs.
func (s *Service) request(ctx context.Context, c Completion) (agent.Request, error) {
	prefs, err := s.turns.Profiles.Preferences.Of(ctx, c.Person)
	if err != nil {
		return agent.Request{}, err
	}
	if c.Mode != "" {
		prefs.Mode = c.Mode
	}
	messages, err := s.withSteps(ctx, c.Person, c.Messages)
	if err != nil {
		return agent.Request{}, err
	}
	request, err := s.turns.RequestOf(ctx, c.Person, prefs, func(string) {})
	request.ID, request.Client, request.Conversation = c.RequestID, c.Client, c.name()
	request.Messages, request.Instructions, request.ClientTools, request.MaxTokens = messages, c.Instructions, c.Tools, c.MaxTokens
	return request, err
}

// name identifies the conversation by how it begins, because clients send no id.
func (c Completion) name() string {
	sum := sha256.New()
	sum.Write([]byte(c.Instructions))
	for _, m := range c.Messages[:min(len(c.Messages), 1)] {
		for _, b := range m.Blocks {
			sum.Write([]byte("\x00" + b.Text))
		}
	}
	return "completion-" + hex.EncodeToString(sum.Sum(nil)[:12])
}

// A client that is asked to call its own tools is sent only these calls. What the agent
// did itself before, in the same answer, is stored here, and put in its place when the
// client continues with the results.

// stepsAge is how long a client can take to continue and still have the whole
// conversation. Later the model sees what the client sends.
const stepsAge = 7 * 24 * time.Hour

// saveSteps stores the steps of a turn that ended with calls of the client's tools. The
// calls get new ids, because those of some providers are not unique.
func (s *Service) saveSteps(ctx context.Context, p profile.Person, reply *agent.Reply) error {
	renameCalls(reply)
	steps, err := json.Marshal(reply.Steps)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "encode the steps of an answer")
	}
	now := time.Now()
	return s.db.Write(ctx, func(tx *db.Tx) error {
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
func (s *Service) loadSteps(ctx context.Context, p profile.Person, call string) (steps []llm.Message, err error) {
	var text string
	err = s.db.QueryRow(ctx, `SELECT steps FROM talk_client_calls WHERE id = $1 AND org = $2 AND person = $3`, call, p.Org, p.User).Scan(&text)
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
func (s *Service) withSteps(ctx context.Context, p profile.Person, messages []llm.Message) ([]llm.Message, error) {
	var all joined
	for _, m := range messages {
		steps := []llm.Message{m}
		if uses := (llm.Answer{Blocks: m.Blocks}).Uses(); len(uses) > 0 {
			stored, err := s.loadSteps(ctx, p, uses[0].ID)
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
