package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
)

// Completion is a conversation that the client keeps itself and sends as a whole. The
// last message is to be answered.
type Completion struct {
	ID           string // of the answer
	RequestID    string
	Person       Person
	Client       string
	Mode         string // one of the organisation's; empty means the one that the person has chosen
	Messages     []llm.Message
	Instructions string // of the client
	Tools        agent.ClientTools
	MaxTokens    int
}

// Complete answers a conversation. Completions of a person have no order and are not
// repeated after a crash: the client has the conversation and can send it again. Ending
// ctx ends the answer.
func (r *Service) Complete(ctx context.Context, c Completion, emit func(agent.Event)) (agent.Reply, error) {
	if err := c.Person.Check(); err != nil {
		return agent.Reply{}, err
	}
	if !r.startTurn() {
		return agent.Reply{}, errLeaving
	}
	defer r.over()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return agent.Reply{}, fault.Wrap(fault.Cancelled, context.Cause(ctx), "wait for other answers")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.background, func() { cancel(errLeaving) })() //nolint:contextcheck // the service ends it too
	ctx = asPerson(ctx, principal.Of(ctx), c.Person)
	request, err := r.completionRequest(ctx, c)
	if err != nil {
		return agent.Reply{}, err
	}
	t := newTurn(c.ID, Message{RequestID: c.RequestID, Person: c.Person})
	r.options.Bus.PublishFor(principal.OwnerOf(ctx), Started{Turn: t.ID, Person: c.Person.String(), RequestID: c.RequestID})
	began := time.Now()
	reply, err := r.agent.Turn(ctx, request, emit)
	r.options.Bus.PublishFor(principal.OwnerOf(ctx), finished(t, reply, err, time.Since(began)))
	if err != nil || len(reply.Calls) == 0 {
		return reply, err
	}
	return reply, r.saveSteps(ctx, c.Person, &reply)
}

// completionRequest gathers what the agent needs.
func (r *Service) completionRequest(ctx context.Context, c Completion) (agent.Request, error) {
	prefs, err := r.Preferences(ctx, c.Person)
	if err != nil {
		return agent.Request{}, err
	}
	if c.Mode != "" {
		prefs.Mode = c.Mode
	}
	prompts, err := r.layers(ctx, c.Person, prefs.Mode)
	if err != nil {
		return agent.Request{}, err
	}
	servers, err := r.offered(ctx, newTurn(c.ID, Message{Person: c.Person}))
	if err != nil {
		return agent.Request{}, err
	}
	messages, err := r.withSteps(ctx, c.Person, c.Messages)
	if err != nil {
		return agent.Request{}, err
	}
	return agent.Request{
		ID: c.RequestID, Client: c.Client, Org: c.Person.Org, User: c.Person.User, Conversation: c.name(),
		Language: prefs.ResponseLanguage, Prompts: prompts, Servers: servers, Memory: r.Memory(c.Person),
		Messages: messages, Instructions: c.Instructions, ClientTools: c.Tools, MaxTokens: c.MaxTokens,
	}, nil
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
