package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/agent/talk"
	"github.com/luanette/luanette/internal/chat"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/inet"
	"github.com/luanette/luanette/internal/secret"
	"github.com/luanette/luanette/internal/upstream"
)

// openChat makes the room where conversations are kept and the door to it.
func (h *House) openChat(ctx context.Context) error {
	c := &h.config.Chat
	keys, err := h.keys()
	if err != nil {
		return err
	}
	assistant := h.assistant()
	room, err := talk.Open(ctx, h.store, assistant, talk.Options{
		Forget:  assistant.forget,
		Servers: &privateServers{upstreams: h.upstreams, used: map[string]time.Time{}}, Depth: c.QueueDepth, Parallel: c.Parallel, Bus: h.bus, Log: h.log,
	})
	if err != nil {
		return err
	}
	h.talk = room
	h.chat = chat.New(room, chat.Options{
		Keys: keys, Debug: c.DebugEvents, Rate: c.Rate,
		Browsers: inet.Browsers{Origins: h.config.MCP.AllowedOrigins},
		Webhooks: webhookTransport(h.config.MCP.AllowedHosts),
		Token:    secret.New(h.options.Env["CALLBACK_TOKEN"]),
		Log:      h.log, Version: h.options.Version,
	})
	if !keys.Any() {
		h.log.WarnContext(ctx, "the chat API is open to everybody who can reach it", "hint", "set ENGINE_API_KEY, or keys in luanette.toml")
	}
	return nil
}

// KeyConfig is a key that opens the HTTP API.
type KeyConfig struct {
	Hash    string   `toml:"hash" help:"sha256: and the hash of the key; the key itself need not be kept"`
	Env     string   `toml:"env" help:"or the variable that holds the key"`
	Scopes  []string `toml:"scopes" help:"what it opens: chat, org (what concerns one organisation) or admin (everything)"`
	Org     string   `toml:"org" help:"the only organisation it is for"`
	Expires string   `toml:"expires" help:"when it ends, such as 2027-01-31"`
}

// keys are those of the configuration, and ENGINE_API_KEY, which opens everything.
func (h *House) keys() (*access.Keys, error) {
	var keys []access.Key
	if token := h.options.Env["ENGINE_API_KEY"]; token != "" {
		keys = append(keys, access.Key{Name: "ENGINE_API_KEY", Hash: access.HashOf(token), Scopes: access.Scopes})
	}
	for _, name := range slices.Sorted(mapKeys(h.config.Keys)) {
		key, err := h.config.Keys[name].read(name, h.options.Env)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return access.New(keys, nil), nil
}

// read makes a key of what the configuration says of it.
func (c KeyConfig) read(name string, env Environment) (access.Key, error) {
	key := access.Key{Name: name, Org: c.Org}
	bad := func(format string, args ...any) (access.Key, error) {
		return key, fault.New(fault.Config, "keys."+name+": "+format, args...)
	}
	var err error
	switch {
	case c.Hash != "" && c.Env != "" || c.Hash == "" && c.Env == "":
		return bad("it takes either hash or env")
	case c.Hash != "":
		if key.Hash, err = access.ParseHash(c.Hash); err != nil {
			return key, fault.Wrap(fault.Config, err, "keys.%s", name)
		}
	default:
		token := env[c.Env]
		if token == "" {
			return bad("the variable %s is not set", c.Env)
		}
		key.Hash = access.HashOf(token)
	}
	for _, scope := range c.Scopes {
		if !slices.Contains(access.Scopes, access.Scope(scope)) {
			return bad("no scope %q; there are chat, org and admin", scope)
		}
		key.Scopes = append(key.Scopes, access.Scope(scope))
	}
	if len(key.Scopes) == 0 {
		return bad("it opens nothing: scopes is empty")
	}
	if slices.Contains(key.Scopes, access.Org) && c.Org == "" {
		return bad("the scope org takes an org")
	}
	if c.Expires != "" {
		if key.Expires, err = time.Parse(time.DateOnly, c.Expires); err != nil {
			return bad("expires must look like 2027-01-31, not %q", c.Expires)
		}
	}
	return key, nil
}

// webhookTransport reaches callbacks, but nothing inside a private network unless
// it is allowed.
func webhookTransport(allowedHosts []string) http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second, Control: dialGuard(allowedHosts)}).DialContext
	return transport
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

// isSomebodys tells namespaces that belong to somebody.
func isSomebodys(namespace string) bool { return strings.HasPrefix(namespace, privatePrefix) }

// Own lists the house's servers.
func (p *privateServers) Own() (list []talk.Server) {
	for _, s := range p.upstreams.List() {
		if !isSomebodys(s.Namespace) {
			list = append(list, talk.Server{ID: s.Namespace, Name: s.Namespace, Enabled: true, Priority: 50})
		}
	}
	return list
}

// Connect brings a server up.
func (p *privateServers) Connect(ctx context.Context, s talk.Server) (string, error) {
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
func spaceOf(s talk.Server) string {
	sum := sha256.Sum256([]byte(s.URL + "\x00" + s.AuthToken))
	return hex.EncodeToString(sum[:12])
}

// Discover connects and counts the tools.
func (p *privateServers) Discover(ctx context.Context, s talk.Server) (int, error) {
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
