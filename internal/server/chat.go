package server

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/completion"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/openaiapi"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// chatScope returns ctx with the tools of the person in whose chat a job was started.
func (srv *Server) chatScope(ctx context.Context) (context.Context, error) {
	if srv.turns == nil { // a server without chat
		return ctx, nil
	}
	return srv.turns.InScope(ctx)
}

// openChat opens the conversations and the chat API.
func (srv *Server) openChat(ctx context.Context) error {
	c := &srv.config.Chat
	callback, err := srv.secrets.Find(c.Callback)
	if err != nil {
		return fault.Wrap(fault.Config, err, "chat.callback_token").WithHint("%s", fault.HintOf(err))
	}
	if !callback.IsZero() && len(c.Receivers) == 0 {
		srv.log.WarnContext(ctx, "no callback gets chat.callback_token", "hint", "name the receivers in chat.callback_origins, such as https://gateway.example")
	}
	model, err := srv.NewAgent()
	assistant := turn.Assistant{Agent: model, Err: err, Flow: srv.policy} // without a model it says what to set
	turns, err := turn.Open(ctx, srv.store, assistant, turn.Options{
		Conversations: conversation.Options{
			Shares: srv.shares, Stored: conversation.StoredMedia{Count: c.Attachments, Bytes: int64(c.AttachedMB) * 1_000_000},
			OnForget: assistant.Forget, OnForgetConversation: assistant.ForgetConversation, OnCopy: assistant.Inherit,
		},
		Servers: servers.Options{
			Upstreams: servers.Connected(srv.orgUpstreams(), servertools.AllowHosts(srv.config.MCP.AllowedHosts)),
			Secrets:   secret.Box{Key: srv.storedKey(), RecoveryHint: "give the server its token again"},
			Log:       srv.log,
		},
		CurrentPrincipal: srv.keys.Current, Depth: c.QueueDepth, Parallel: c.Parallel, Bus: srv.bus, Log: srv.log,
		Node: srv.nodeID(), Broadcast: srv.notifier(conversationTopic), CarryTrace: telemetry.Carry,
	})
	if err != nil {
		return err
	}
	srv.turns = turns
	srv.shares.Register(principal.Conversation, turns.Conversations.SharedConversation)
	listener, err := c.OpenTranscriber(srv.options.Env)
	if err != nil {
		return err
	}
	srv.chat = chatapi.New(turns, chatapi.Options{
		Model: assistant.About(), Models: assistant.Models(), ModelError: assistant.Err, Transcribe: listener.Func(),
		Debug: c.DebugEvents, Rate: c.Rate,
		Webhooks: srv.outbound().Transport(),
		Token:    callback, Receivers: c.Receivers, Usage: srv.spending, Audit: srv.audit.RecordAction,
		Log: srv.log, Version: srv.options.Version,
	})
	srv.closeFirst.plain(srv.chat.Close)
	srv.closeFirst.plain(turns.Close)
	srv.openAI = openaiapi.New(completion.New(turns, srv.store), openaiapi.Options{Rate: c.Rate, Log: srv.log})
	return nil
}
