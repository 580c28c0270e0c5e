package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/mcp/upstream"
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
		Servers:          &privateServers{upstreams: srv.upstreams, used: map[string]time.Time{}}, Depth: c.QueueDepth, Parallel: c.Parallel, Bus: srv.bus, Log: srv.log,
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

// privateServers connects to what people and organisations have chosen, each
// under a namespace that only those who have the same server and token share, and
// nobody else sees.
type privateServers struct {
	upstreams *upstreams

	mu   sync.Mutex
	used map[string]time.Time // by namespace
}

const (
	privatePrefix = "own-"
	privateMost   = 500
	privateIdle   = time.Hour
	discoverWait  = 10 * time.Second
)

// isPrivateNamespace tells namespaces that belong to somebody.
func isPrivateNamespace(namespace string) bool { return strings.HasPrefix(namespace, privatePrefix) }

// Own lists the server's servers.
func (p *privateServers) Own() (list []conversation.Server) {
	for _, s := range p.upstreams.List() {
		if !isPrivateNamespace(s.Namespace) && s.State != stateRemoved {
			list = append(list, conversation.Server{ID: s.Namespace, Name: s.Namespace, Enabled: true, Priority: 50})
		}
	}
	return list
}

// Connect brings a server up.
func (p *privateServers) Connect(ctx context.Context, s conversation.Server) (string, error) {
	space := privatePrefix + spaceOf(s)
	spec := upstream.Spec{Name: space, URL: s.URL}
	if s.AuthToken != "" {
		spec.Headers = map[string]string{"Authorization": "Bearer " + s.AuthToken}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(ctx)
	if _, there := p.used[space]; !there && len(p.used) >= privateMost {
		return "", fault.New(fault.Limit, "%d servers of people are connected already", len(p.used)).WithHint("try again later")
	}
	if err := p.upstreams.want(spec); err != nil {
		return "", err
	}
	p.used[space] = time.Now()
	return space, nil
}

// sweep removes what nobody has used for long. p.mu is held.
func (p *privateServers) sweep(ctx context.Context) {
	for space, at := range p.used {
		if time.Since(at) > privateIdle {
			_, _ = p.upstreams.Remove(ctx, space) // it never fails
			delete(p.used, space)
		}
	}
}

// spaceOf is the same for the same server and token, and cannot be guessed
// without the token.
func spaceOf(s conversation.Server) string {
	sum := sha256.Sum256([]byte(s.URL + "\x00" + s.AuthToken))
	return hex.EncodeToString(sum[:12])
}

// Discover connects and counts the tools.
func (p *privateServers) Discover(ctx context.Context, s conversation.Server) (int, error) {
	space := s.ID
	if s.URL != "" {
		var err error
		if space, err = p.Connect(ctx, s); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, discoverWait)
	defer cancel()
	p.upstreams.tried(ctx, space)
	status, there := p.upstreams.Status(space) //nolint:contextcheck // it reads what is known, waiting for nothing
	switch {
	case !there:
		return 0, fault.New(fault.NotFound, "no server %q", space)
	case status.State != "connected" && status.State != "asleep":
		return 0, fault.New(fault.Unavailable, "%s: %s", status.State, status.Error)
	}
	return status.Tools, nil
}
