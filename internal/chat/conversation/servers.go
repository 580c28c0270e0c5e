package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
)

// Server is an MCP server that an organisation or a person has chosen. Without a
// URL it is one of the house's own, by its namespace, to switch off, to order or
// to restrict.
type Server struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	URL          string   `json:"url,omitempty"`
	AuthToken    string   `json:"authToken,omitempty"`
	Enabled      bool     `json:"enabled"`
	Priority     int      `json:"priority"`
	AllowedTools []string `json:"allowedTools,omitempty"`
}

// HiddenToken stands for a token wherever a server is shown. Said back, it leaves
// the token as it is.
const HiddenToken = "••••••••"

// Hidden returns the server without its token.
func (s Server) Hidden() Server {
	if s.AuthToken != "" {
		s.AuthToken = HiddenToken
	}
	return s
}

// Servers connects to what people have chosen.
type Servers interface {
	// Own lists the house's servers, by namespace.
	Own() []Server
	// Connect brings a server up for a person and whoever else has the same URL
	// and token, and returns its namespace. It does not wait for the connection.
	Connect(ctx context.Context, s Server) (space string, err error)
	// Discover connects and returns how many tools there are.
	Discover(ctx context.Context, s Server) (tools int, err error)
}

const (
	serversKind = "servers"
	serversMost = 50
)

var serverID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// Check refuses what cannot be connected to.
func (s Server) Check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.InvalidParams, "server "+s.ID+": "+format, args...)
	}
	if !serverID().MatchString(s.ID) {
		return fault.New(fault.InvalidParams, "%q is not an id for a server", s.ID).
			WithHint("use up to 64 letters, digits, - and _")
	}
	if len(s.Name) > 128 {
		return bad("its name has %d bytes, at most 128 are possible", len(s.Name))
	}
	if s.Priority < 0 || s.Priority > 100 {
		return bad("priority must be 0 to 100, not %d", s.Priority)
	}
	if s.URL != "" && !reachable(s.URL) {
		return bad("its url must be http:// or https:// without a password")
	}
	return nil
}

// reachable tells whether an address is one we may connect to.
func reachable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// UnmarshalJSON reads a server; one of which nothing else is said is enabled.
func (s *Server) UnmarshalJSON(text []byte) error {
	type plain Server
	fresh := plain{Enabled: true}
	if err := json.Unmarshal(text, &fresh); err != nil {
		return err
	}
	*s = Server(fresh)
	return nil
}

// Servers returns what a person, or an organisation, has chosen, in order.
func (r *Service) Servers(ctx context.Context, p Person) ([]Server, error) {
	var kept []keptServer
	if _, err := r.load(ctx, p, serversKind, "", &kept); err != nil {
		return nil, err
	}
	list := make([]Server, len(kept))
	for i, k := range kept {
		list[i] = r.unsealed(ctx, p, k)
	}
	slices.SortStableFunc(list, byPriority)
	return list, nil
}

func byPriority(a, b Server) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
}

// ReplaceServers replaces all that a person, or an organisation, has chosen.
func (r *Service) ReplaceServers(ctx context.Context, p Person, list []Server) ([]Server, error) {
	if len(list) > serversMost {
		return nil, fault.New(fault.Limit, "%d servers are too many", len(list)).WithHint("at most %d are possible", serversMost)
	}
	before, err := r.Servers(ctx, p)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		if err := s.Check(); err != nil {
			return nil, err
		}
		if seen[s.ID] {
			return nil, fault.New(fault.InvalidParams, "server %s is there twice", s.ID)
		}
		seen[s.ID] = true
		if s.AuthToken == HiddenToken {
			s.AuthToken = tokenOf(before, *s)
		}
	}
	slices.SortStableFunc(list, byPriority)
	kept := make([]keptServer, len(list))
	for i, s := range list {
		if kept[i], err = r.sealed(p, s); err != nil {
			return nil, err
		}
	}
	return list, r.keep(ctx, p, serversKind, "", kept)
}

// tokenOf is what a server's token was, provided that it still goes to the same
// place.
func tokenOf(before []Server, s Server) string {
	for _, old := range before {
		if old.ID == s.ID && old.URL == s.URL {
			return old.AuthToken
		}
	}
	return ""
}

// PutServer adds one server or replaces it.
func (r *Service) PutServer(ctx context.Context, p Person, s Server) ([]Server, error) {
	list, err := r.Servers(ctx, p)
	if err != nil {
		return nil, err
	}
	if s.AuthToken == HiddenToken {
		s.AuthToken = tokenOf(list, s)
	}
	list = slices.DeleteFunc(list, func(old Server) bool { return old.ID == s.ID })
	return r.ReplaceServers(ctx, p, append(list, s))
}

// RemoveServer removes one.
func (r *Service) RemoveServer(ctx context.Context, p Person, id string) error {
	list, err := r.Servers(ctx, p)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(s Server) bool { return s.ID == id })
	if len(rest) == len(list) {
		return fault.New(fault.NotFound, "no server %q", id).WithHint("GET …/mcp-servers lists them")
	}
	_, err = r.ReplaceServers(ctx, p, rest)
	return err
}

// Discover tells what a server offers.
func (r *Service) Discover(ctx context.Context, s Server) (tools int, err error) {
	if r.options.Servers == nil {
		return 0, fault.New(fault.Unavailable, "no server can be reached from here")
	}
	return r.options.Servers.Discover(ctx, s)
}

// offered is what a person's agent may use: the house's servers, changed and added
// to by the organisation, then by the person. Nil is everything, where nobody has
// chosen.
func (r *Service) offered(ctx context.Context, p Person) ([]agent.Server, error) {
	if r.options.Servers == nil {
		return nil, nil
	}
	chosen := map[string]Server{}
	changed := false
	for _, own := range r.options.Servers.Own() {
		chosen[own.ID] = own
	}
	for _, whose := range []Person{p.org(), p} {
		list, err := r.Servers(ctx, whose)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			chosen[s.ID], changed = s, true
		}
	}
	if !changed {
		return nil, nil
	}
	offered := []agent.Server{}
	for _, s := range slices.SortedFunc(maps.Values(chosen), byPriority) {
		if server, ok := r.connect(ctx, p, s); ok {
			offered = append(offered, server)
		}
	}
	return offered, nil
}

// connect brings a server up. One that cannot be never breaks a conversation.
func (r *Service) connect(ctx context.Context, p Person, s Server) (agent.Server, bool) {
	if !s.Enabled {
		return agent.Server{}, false
	}
	space := s.ID
	if s.URL != "" {
		var err error
		if space, err = r.options.Servers.Connect(ctx, s); err != nil {
			r.options.Log.WarnContext(ctx, "mcp_discovery_error", "event", "mcp_discovery_error", "user_id", p.User, "server_url", s.URL, "error", err)
			return agent.Server{}, false
		}
	}
	return agent.Server{Space: space, Name: cmp.Or(s.Name, s.ID), Tools: s.AllowedTools}, true
}
