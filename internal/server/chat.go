package server

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/completion"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/openaiapi"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/store/delivery"
)

// chats serve conversations.
type chats struct {
	turns  *turn.Service // nil unless the server serves, like the others
	chat   *chatapi.Handler
	openAI *openaiapi.Handler
}

// openChat opens the conversations and the chat API.
func openChat(ctx context.Context, in *parts) (all chats, err error) {
	c := &in.config.Chat
	callback, err := in.secrets.Find(c.Callback)
	if err != nil {
		return all, fault.Wrap(fault.Config, err, "chat.callback_token").WithHint("%s", fault.HintOf(err))
	}
	signing, err := in.secrets.Find(c.Signing)
	if err == nil && !signing.IsZero() {
		_, err = delivery.KeyOf(signing)
	}
	if err != nil {
		return all, fault.Wrap(fault.Config, err, "chat.callback_secret").WithHint("%s", fault.HintOf(err))
	}
	if !callback.IsZero() && len(c.Receivers) == 0 {
		in.log.WarnContext(ctx, "no callback gets chat.callback_token", "hint", "name the receivers in chat.callback_origins, such as https://gateway.example")
	}
	listener, err := c.OpenTranscriber(in.options.Env)
	if err != nil {
		return all, err
	}
	assistant := turn.NewAssistant(in.policy)
	in.useModel = func() { assistant.Use(in.NewAgent()) } // without a model it says what to set
	in.useModel()
	turns, err := turn.Open(ctx, in.store, assistant, turn.Options{
		Conversations: conversation.Options{
			Shares: in.shares, Stored: conversation.StoredMedia{Count: c.Attachments, Bytes: int64(c.AttachedMB) * 1_000_000},
			OnForget: assistant.Forget, OnForgetConversation: assistant.ForgetConversation, OnCopy: assistant.Inherit,
		},
		Servers: servers.Options{
			Upstreams: servers.Connected(in.orgUpstreams(), servertools.AllowHosts(in.config.MCP.AllowedHosts)),
			Secrets:   secret.Box{Key: in.storedKey(), RecoveryHint: "give the server its token again"},
			Log:       in.log,
		},
		OnOutcome: chatapi.Deliver(in.deliveries, time.Now), CurrentPrincipal: in.keys.Current, Model: func() string { usual, _, _ := assistant.About(); return usual.Model }, Depth: c.QueueDepth, Parallel: c.Parallel, Bus: in.bus, Log: in.log,
		Node: in.nodeID(), Broadcast: in.notifier(conversationTopic), CarryTrace: telemetry.Carry,
	})
	if err != nil {
		return all, err
	}
	in.turns.Store(turns)
	in.shares.Register(principal.Conversation, turns.Conversations.SharedConversation)
	all = chats{turns: turns, openAI: openaiapi.New(completion.New(turns, in.store), openaiapi.Options{Rate: c.Rate, Log: in.log})}
	all.chat = chatapi.New(turns, chatapi.Options{
		Model: assistant.About, Transcribe: listener.Func(),
		Debug: c.DebugEvents, Rate: c.Rate,
		Webhooks: in.outbound().Transport(), CheckHost: in.outbound().Check, Secret: signing, Deliveries: in.deliveries,
		Token: callback, Receivers: c.Receivers, Usage: in.spending, Audit: in.audit.RecordAction,
		Log: in.log, Version: in.options.Version,
	})
	in.closeFirst.plain("the chat", all.chat.Close)
	in.closeFirst.plain("chat turns", turns.Close)
	return all, nil
}

// NewAgent returns an agent that has all tools. Without a configured model it fails: the
// error says what to set.
func (in *parts) NewAgent() (*agent.Agent, error) {
	c := &in.current().Chat
	model, others, err := c.OpenModels(in.options.Env, in.secrets)
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Options{
		Model: model, Models: others, Tools: in.catalog, Core: c.OwnTools(), Own: in.isScript, Callable: builtin.InChat,
		Servers: func(space string) bool { return !upstreamset.IsPrivate(space) },
		Asleep: func(space string) bool {
			s, _ := in.upstreams.Manager.Status(space)
			return s.State == upstream.StateAsleep
		},
		Unreachable: func(space string) (address, why string) {
			s, _ := in.upstreams.Manager.Status(space)
			return s.Target, s.LastError
		},
		Offer:   agent.Offer(c.Offer),
		Prompts: c.PromptTexts(), Version: in.options.Version, Content: c.LogContent,
		Limits: agent.Limits{
			Iterations: c.Iterations, Calls: c.Calls, ResultBytes: c.ResultKB << 10, PromptBytes: c.PromptKB * 1000,
			ToolTime: time.Duration(c.ToolTimeout), DirectTools: c.DirectTools,
		},
		Approved: in.approvedResult,
		Budget:   in.spending, Bus: in.bus, Log: in.log, Tracer: in.telemetry.Tracer("agent"), Meter: in.telemetry.Meter("agent"),
	})
}
