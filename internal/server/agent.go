package server

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/scripting/host"
)

// NewAgent returns an agent that has all tools. Without a configured model it fails: the
// error says what to set.
func (srv *Server) NewAgent() (*agent.Agent, error) {
	c := &srv.config.Chat
	model, err := c.OpenModel(srv.options.Env, srv.secrets)
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Options{
		Model: model, Tools: srv.catalog, Core: c.Tools, Own: srv.isScript,
		Servers: func(space string) bool { return !upstreamset.IsPrivate(space) },
		Offer:   agent.Offer(c.Offer),
		Prompts: c.PromptTexts(), Version: srv.options.Version, Content: c.LogContent,
		Limits: agent.Limits{
			Iterations: c.Iterations, Calls: c.Calls, ResultBytes: c.ResultKB << 10, PromptBytes: c.PromptKB * 1000,
			ToolTime: time.Duration(c.ToolTimeout), DirectTools: c.DirectTools,
		},
		Bus: srv.bus, Log: srv.log, Tracer: srv.telemetry.Tracer("agent"), Meter: srv.telemetry.Meter("agent"),
	})
}

// isScript tells whether a tool without a namespace is a published script.
func (srv *Server) isScript(name string) bool { return srv.ownTools != nil && !srv.ownTools.Has(name) }

// assistant answers messages, or says why nobody can.
type assistant struct {
	agent  *agent.Agent
	absent error
	flow   host.Flow // what was read in a conversation is followed from turn to turn
}

func (srv *Server) assistant() assistant {
	a, err := srv.NewAgent()
	return assistant{a, err, srv.policy}
}

// forget takes away what a person's conversations have left beside their history.
func (a assistant) forget(ctx context.Context, p conversation.Person) error {
	if a.agent == nil {
		return nil
	}
	return a.agent.Forget(ctx, p.Org, p.User)
}

// Turn answers one message.
func (a assistant) Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	if a.agent == nil {
		return agent.Reply{RequestID: r.ID}, a.absent
	}
	ctx = a.flow.Begin(ctx)
	record := "talk:" + r.Org + "/" + r.User + "/" + r.Conversation
	if err := a.flow.Recall(ctx, record); err != nil {
		return agent.Reply{RequestID: r.ID}, err
	}
	reply, err := a.agent.Turn(ctx, r, emit)
	if problem := a.flow.Remember(context.WithoutCancel(ctx), record); err == nil {
		err = problem
	}
	return reply, err
}
