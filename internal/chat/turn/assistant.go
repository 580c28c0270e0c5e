package turn

import (
	"context"
	"sync/atomic"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/tool"
)

// Assistant answers messages with an agent. It tracks labelled data of a conversation
// from turn to turn.
type Assistant struct {
	flow  Flow
	model *atomic.Pointer[answering]
}

// answering is the agent that answers, or why there is none.
type answering struct {
	agent *agent.Agent
	err   error
}

// NewAssistant returns an assistant that has no agent yet.
func NewAssistant(flow Flow) Assistant {
	a := Assistant{flow, new(atomic.Pointer[answering])}
	a.model.Store(&answering{})
	return a
}

// Use makes later messages be answered by an agent; without one, err says what to set.
func (a Assistant) Use(by *agent.Agent, err error) { a.model.Store(&answering{by, err}) }

func (a Assistant) agent() *agent.Agent { return a.model.Load().agent }

// Flow tracks which labelled data a context has read.
type Flow interface {
	Begin(ctx context.Context) context.Context
	Recall(ctx context.Context, name string) error
	Remember(ctx context.Context, name string) error
}

// About identifies the model and those that a message can choose, the usual one first, or
// says why there is none.
func (a Assistant) About() (usual llm.About, all []llm.About, err error) {
	now := a.model.Load()
	if now.agent == nil {
		return usual, nil, now.err
	}
	return now.agent.About(), now.agent.Models(), nil
}

// ForgetConversation removes what one conversation of a person left beside its history.
func (a Assistant) ForgetConversation(ctx context.Context, p profile.Person, conversation string) error {
	if a.agent() == nil {
		return nil
	}
	return a.agent().Reset(ctx, p.Org, p.User, conversation)
}

// Forget removes what a person's conversations left beside their history.
func (a Assistant) Forget(ctx context.Context, p profile.Person) error {
	if a.agent() == nil {
		return nil
	}
	return a.agent().Forget(ctx, p.Org, p.User)
}

// Scope returns the tools that turns with these servers may use.
func (a Assistant) Scope(servers []agent.Server) *tool.Scope {
	if a.agent() == nil {
		return &tool.Scope{Allows: func(tool.Ref) bool { return false }}
	}
	return a.agent().Scope(servers)
}

// flowRecord names what a conversation has read.
func flowRecord(p profile.Person, conversation string) string {
	return "talk:" + p.Org + "/" + p.User + "/" + conversation
}

// Inherit makes a conversation remember which labelled data another has read.
func (a Assistant) Inherit(ctx context.Context, from profile.Person, id string, to profile.Person, copied string) error {
	ctx = a.flow.Begin(ctx)
	if err := a.flow.Recall(ctx, flowRecord(from, id)); err != nil {
		return err
	}
	return a.flow.Remember(ctx, flowRecord(to, copied))
}

// Turn answers one message.
func (a Assistant) Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	now := a.model.Load()
	if now.agent == nil {
		return agent.Reply{RequestID: r.ID}, now.err
	}
	ctx = a.flow.Begin(ctx)
	record := flowRecord(profile.Person{Org: r.Org, User: r.User}, r.Conversation)
	if err := a.flow.Recall(ctx, record); err != nil {
		return agent.Reply{RequestID: r.ID}, err
	}
	reply, err := now.agent.Turn(ctx, r, emit)
	if problem := a.flow.Remember(context.WithoutCancel(ctx), record); err == nil {
		err = problem
	}
	return reply, err
}

// Scoper is an Agent that knows which tools turns may use.
type Scoper interface {
	Scope(servers []agent.Server) *tool.Scope
}

// InScope returns ctx with the tools that the conversations of the principal's person may
// use, for jobs that were started in one. Outside of chats it is ctx.
func (r *Service) InScope(ctx context.Context) (context.Context, error) {
	p, in, err := profile.ActingFor(ctx)
	scoper, can := r.agent.(Scoper)
	if !in || !can || err != nil {
		return ctx, err
	}
	offered, err := r.Servers.Offered(ctx, p, func(string) {})
	if err != nil {
		return ctx, err
	}
	return tool.WithScope(ctx, scoper.Scope(offered)), nil
}
