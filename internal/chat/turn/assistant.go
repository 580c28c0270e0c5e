package turn

import (
	"context"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/tool"
)

// Assistant answers messages with an agent. It tracks labelled data of a conversation
// from turn to turn.
type Assistant struct {
	Agent *agent.Agent
	Err   error // why there is no agent, if there is none
	Flow  Flow
}

// Flow tracks which labelled data a context has read.
type Flow interface {
	Begin(ctx context.Context) context.Context
	Recall(ctx context.Context, name string) error
	Remember(ctx context.Context, name string) error
}

// About identifies the model; it is empty if there is none.
func (a Assistant) About() llm.About {
	if a.Agent == nil {
		return llm.About{}
	}
	return a.Agent.About()
}

// Models identifies the models that a message can choose, the usual one first.
func (a Assistant) Models() []llm.About {
	if a.Agent == nil {
		return nil
	}
	return a.Agent.Models()
}

// ForgetConversation removes what one conversation of a person left beside its history.
func (a Assistant) ForgetConversation(ctx context.Context, p profile.Person, conversation string) error {
	if a.Agent == nil {
		return nil
	}
	return a.Agent.Reset(ctx, p.Org, p.User, conversation)
}

// Forget removes what a person's conversations left beside their history.
func (a Assistant) Forget(ctx context.Context, p profile.Person) error {
	if a.Agent == nil {
		return nil
	}
	return a.Agent.Forget(ctx, p.Org, p.User)
}

// Scope returns the tools that turns with these servers may use.
func (a Assistant) Scope(servers []agent.Server) *tool.Scope {
	if a.Agent == nil {
		return &tool.Scope{Allows: func(tool.Ref) bool { return false }}
	}
	return a.Agent.Scope(servers)
}

// flowRecord names what a conversation has read.
func flowRecord(p profile.Person, conversation string) string {
	return "talk:" + p.Org + "/" + p.User + "/" + conversation
}

// Inherit makes a conversation remember which labelled data another has read.
func (a Assistant) Inherit(ctx context.Context, from profile.Person, id string, to profile.Person, copied string) error {
	ctx = a.Flow.Begin(ctx)
	if err := a.Flow.Recall(ctx, flowRecord(from, id)); err != nil {
		return err
	}
	return a.Flow.Remember(ctx, flowRecord(to, copied))
}

// Turn answers one message.
func (a Assistant) Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	if a.Agent == nil {
		return agent.Reply{RequestID: r.ID}, a.Err
	}
	ctx = a.Flow.Begin(ctx)
	record := flowRecord(profile.Person{Org: r.Org, User: r.User}, r.Conversation)
	if err := a.Flow.Recall(ctx, record); err != nil {
		return agent.Reply{RequestID: r.ID}, err
	}
	reply, err := a.Agent.Turn(ctx, r, emit)
	if problem := a.Flow.Remember(context.WithoutCancel(ctx), record); err == nil {
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
