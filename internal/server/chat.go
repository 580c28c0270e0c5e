package server

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/conversation"
)

// openChat makes the room where conversations are kept and the door to it.
func (srv *Server) openChat(ctx context.Context) error {
	c := &srv.config.Chat
	callback, err := srv.secrets.Find(c.Callback)
	if err != nil {
		return fault.Wrap(fault.Config, err, "chat.callback_token").WithHint("%s", fault.HintOf(err))
	}
	assistant := srv.assistant()
	room, err := conversation.Open(ctx, srv.store, assistant, conversation.Options{
		CurrentPrincipal: srv.keys.Current,
		OnForget:         assistant.forget,
		Secrets:          secret.Box{Key: sync.OnceValues(func() (secret.Text, error) { return srv.config.OAuthKey(srv.secrets) }), RecoveryHint: "give the server its token again"},
		Servers:          conversation.NewPrivateServers(srv.upstreams), Depth: c.QueueDepth, Parallel: c.Parallel, Bus: srv.bus, Log: srv.log,
		Node: srv.nodeID(), Broadcast: srv.notifier(conversationTopic),
	})
	if err != nil {
		return err
	}
	srv.conversations = room
	srv.chat = chatapi.New(room, chatapi.Options{
		Debug: c.DebugEvents, Rate: c.Rate,
		Browsers: netguard.Browsers{Origins: srv.config.MCP.AllowedOrigins},
		Webhooks: srv.outward().transport(),
		Token:    callback,
		Log:      srv.log, Version: srv.options.Version,
	})
	return nil
}
