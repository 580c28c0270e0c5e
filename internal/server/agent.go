package server

import (
	"time"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// NewAgent returns an agent that has all tools. Without a configured model it fails: the
// error says what to set.
func (srv *Server) NewAgent() (*agent.Agent, error) {
	c := &srv.config.Chat
	model, others, err := c.OpenModels(srv.options.Env, srv.secrets)
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Options{
		Model: model, Models: others, Tools: srv.catalog, Core: c.OwnTools(), Own: srv.isScript, Callable: builtin.InChat,
		Servers: func(space string) bool { return !upstreamset.IsPrivate(space) },
		Offer:   agent.Offer(c.Offer),
		Prompts: c.PromptTexts(), Version: srv.options.Version, Content: c.LogContent,
		Limits: agent.Limits{
			Iterations: c.Iterations, Calls: c.Calls, ResultBytes: c.ResultKB << 10, PromptBytes: c.PromptKB * 1000,
			ToolTime: time.Duration(c.ToolTimeout), DirectTools: c.DirectTools,
		},
		Approved: srv.approvedResult,
		Budget:   srv.spending, Bus: srv.bus, Log: srv.log, Tracer: srv.telemetry.Tracer("agent"), Meter: srv.telemetry.Meter("agent"),
	})
}
