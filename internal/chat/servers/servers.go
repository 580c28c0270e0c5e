// Package servers stores which MCP servers the agent may use for people and their
// organisations, and connects those that they have added.
package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
)

// Server is an MCP server that an organisation or a person has configured. One of an
// organisation with a URL is an upstream of its people, in chats and elsewhere; one of a person
// exists in the chats of that person. Without a URL it refers to an upstream by its name, to
// disable, order or restrict it in chats.
type Server struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	URL          string   `json:"url,omitempty"`
	AuthToken    string   `json:"authToken,omitempty"`
	Enabled      bool     `json:"enabled"`
	Priority     int      `json:"priority" doc:"0 to 100, of servers with a higher one the tools come first; 50 if it is missing, as for upstreams without an entry"`
	AllowedTools []string `json:"allowedTools,omitempty"`

	// Space is the upstream that was added for it, if it is an organisation's.
	Space string `json:"-"`
}

// HiddenToken replaces a token wherever a server is shown. A client that sends it back
// leaves the token unchanged.
const HiddenToken = "••••••••"

// Hidden returns the server without its token.
func (s Server) Hidden() Server {
	if s.AuthToken != "" {
		s.AuthToken = HiddenToken
	}
	return s
}

// Upstreams are the upstreams of the program, and the servers of people.
type Upstreams interface {
	// All lists the upstreams, by namespace.
	All() []Server
	// Put adds a server to the upstreams of an organisation, for the principal of ctx, and
	// returns its namespace; if it has a Space, it changes that upstream.
	Put(ctx context.Context, org string, s Server) (space string, err error)
	// Address returns the URL and the token of an upstream that Put added; "" if it was removed.
	Address(space string) (url, token string)
	// Remove removes an upstream that Put added.
	Remove(ctx context.Context, org, space string) error
	// CheckURL refuses addresses that the principal of ctx may not add.
	CheckURL(ctx context.Context, target *url.URL) error
	// Connect connects a server of a person and returns its namespace, which stays the same
	// when URL or token change. It does not wait for the connection.
	Connect(ctx context.Context, owner profile.Person, s Server) (space string, err error)
	// Await waits a while for those of these namespaces that were not tried yet, so that their
	// tools are known. It first calls waits with their number, if there are any.
	Await(ctx context.Context, spaces []string, waits func(count int))
	// Discover returns the names of the tools of a namespace, once it was tried.
	Discover(ctx context.Context, space string) (tools []string, err error)
}

// Options are the options of a Registry.
type Options struct {
	Upstreams Upstreams // nil means that there are none, and none can be added
	// Secrets encrypts the tokens of people's servers; without a key none can be stored.
	Secrets secret.Box
	Log     *slog.Logger
}

// Registry has the servers of people and organisations. It is safe for concurrent use.
type Registry struct {
	Options
	document *profile.Document[[]storedServer]
}

// New returns the registry whose servers are part of profiles.
func New(profiles *profile.Store, o Options) *Registry {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Registry{o, profile.NewDocument[[]storedServer](profiles, "servers")}
}

const (
	maxServers = 50 // that a person or an organisation may have

	maxPriority   = 100
	usualPriority = 50
)

var serverID = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// Check validates the server.
func (s Server) Check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.InvalidParams, "server "+s.ID+": "+format, args...)
	}
	if !serverID().MatchString(s.ID) {
		return fault.New(fault.InvalidParams, "%q is not a valid id of a server", s.ID).
			WithHint("use up to 64 letters, digits, - and _")
	}
	if len(s.Name) > 128 {
		return bad("its name has %d bytes, at most 128 are allowed", len(s.Name))
	}
	if s.Priority < 0 || s.Priority > maxPriority {
		return bad("priority must be 0 to %d, not %d; higher ones come first", maxPriority, s.Priority)
	}
	if s.URL != "" && !reachable(s.URL) {
		return bad("its url must be http:// or https:// without a password")
	}
	return nil
}

// reachable reports whether an address may be connected to.
func reachable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// newServer returns a server of which nothing is given.
func newServer(id string) Server { return Server{ID: id, Enabled: true, Priority: usualPriority} }

// UnmarshalJSON reads a server; what is not given is as usual.
func (s *Server) UnmarshalJSON(text []byte) error {
	type plain Server
	fresh := plain(newServer(""))
	if err := json.Unmarshal(text, &fresh); err != nil {
		return err
	}
	*s = Server(fresh)
	return nil
}

// List returns the servers of a person or an organisation, in order.
func (r *Registry) List(ctx context.Context, p profile.Person) ([]Server, error) {
	kept, err := r.document.Of(ctx, p)
	if err != nil {
		return nil, err
	}
	list := make([]Server, len(kept))
	for i, k := range kept {
		list[i] = r.unsealed(ctx, p, k)
		if k.Namespace != "" && r.Upstreams != nil {
			list[i].URL, list[i].AuthToken = r.Upstreams.Address(k.Namespace)
		}
	}
	slices.SortStableFunc(list, byPriority)
	return list, nil
}

func byPriority(a, b Server) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
}

// Replace replaces all servers of a person or an organisation.
func (r *Registry) Replace(ctx context.Context, p profile.Person, list []Server) ([]Server, error) {
	if len(list) > maxServers {
		return nil, fault.New(fault.Limit, "%d servers are too many", len(list)).WithHint("at most %d are allowed", maxServers)
	}
	before, err := r.List(ctx, p)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for i := range list {
		s, old := &list[i], named(before, list[i].ID)
		if s.AuthToken == HiddenToken {
			s.AuthToken = ""
			if old.URL == s.URL {
				s.AuthToken = old.AuthToken
			}
		}
		if s.Space = old.Space; slices.ContainsFunc(list[:i], func(other Server) bool { return other.ID == s.ID }) {
			return nil, fault.New(fault.InvalidParams, "server %s is listed twice", s.ID)
		}
		if err := r.checkServer(ctx, p, *s, old); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, byPriority)
	if p.User == "" && r.Upstreams != nil {
		if err := r.changeUpstreams(ctx, p.Org, before, list); err != nil {
			return nil, err
		}
	}
	kept := make([]storedServer, len(list))
	for i, s := range list {
		if kept[i], err = r.sealed(p, s); err != nil {
			return nil, err
		}
	}
	return list, r.document.Set(ctx, p, kept)
}

// named returns the server of a list with an id, or an empty one.
func named(list []Server, id string) Server {
	if i := slices.IndexFunc(list, func(s Server) bool { return s.ID == id }); i >= 0 {
		return list[i]
	}
	return Server{}
}

// checkServer checks a server that replaces old.
func (r *Registry) checkServer(ctx context.Context, p profile.Person, s, old Server) error {
	if err := s.Check(); err != nil {
		return err
	}
	if old.ID != "" && s.URL == old.URL || r.Upstreams == nil {
		return nil
	}
	exists := slices.ContainsFunc(r.upstreams(ctx, p), func(own ownedServer) bool { return own.ID == s.ID })
	switch {
	case s.URL == "" && (old.URL != "" || !exists):
		return fault.New(fault.InvalidParams, "server %s: url is missing", s.ID).
			WithHint("only an entry for an upstream that is there has none; PATCH changes only the fields that are given")
	case s.URL == "":
		return nil
	case old.URL == "" && exists:
		return fault.New(fault.Conflict, "there is an upstream %s already", s.ID).
			WithHint("choose another id, or leave out the url to change how chats use that upstream")
	}
	target, err := url.Parse(s.URL)
	if err != nil {
		return err
	}
	return r.Upstreams.CheckURL(ctx, target)
}

// changeUpstreams makes the servers of an organisation with a URL its upstreams, and removes
// those that are not in the list any more.
func (r *Registry) changeUpstreams(ctx context.Context, org string, before, list []Server) error {
	for i := range list {
		s, old := &list[i], named(before, list[i].ID)
		if s.URL == "" || old.Space != "" && s.URL == old.URL && s.AuthToken == old.AuthToken {
			continue
		}
		if old.URL == "" {
			s.Space = "" // it was removed meanwhile
		}
		var err error
		if s.Space, err = r.Upstreams.Put(ctx, org, *s); err != nil {
			return err
		}
	}
	for _, old := range before {
		if old.Space != "" && named(list, old.ID).ID == "" {
			if err := r.Upstreams.Remove(ctx, org, old.Space); err != nil {
				return err
			}
		}
	}
	return nil
}

// Patch adds a server, or changes the given fields of an existing one. A new URL
// needs its token again: the stored one belongs to the old URL. dropped says that there was one.
func (r *Registry) Patch(ctx context.Context, p profile.Person, id string, changes json.RawMessage) (list []Server, dropped bool, err error) {
	if list, err = r.List(ctx, p); err != nil {
		return nil, false, err
	}
	type plain Server
	s := plain(newServer(id))
	if old := named(list, id); old.ID != "" {
		s = plain(old)
	}
	before := s
	if err := json.Unmarshal(changes, &s); err != nil {
		return nil, false, fault.Wrap(fault.InvalidParams, err, "read server %s", id)
	}
	if s.ID != id {
		return nil, false, fault.New(fault.InvalidParams, "the id of server %s cannot be changed", id).WithHint("add one with the new id, and remove the old one")
	}
	if s.URL != before.URL && (s.AuthToken == before.AuthToken || s.AuthToken == HiddenToken) {
		dropped, s.AuthToken = before.AuthToken != "", ""
	}
	list, err = r.Put(ctx, p, Server(s))
	return list, dropped, err
}

// Put adds or replaces a server.
func (r *Registry) Put(ctx context.Context, p profile.Person, s Server) ([]Server, error) {
	list, err := r.List(ctx, p)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(old Server) bool { return old.ID == s.ID })
	return r.Replace(ctx, p, append(list, s))
}

// Remove removes a server.
func (r *Registry) Remove(ctx context.Context, p profile.Person, id string) error {
	list, err := r.List(ctx, p)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(s Server) bool { return s.ID == id })
	if len(rest) == len(list) {
		return fault.New(fault.NotFound, "no server %q", id).WithHint("GET …/mcp-servers lists them")
	}
	_, err = r.Replace(ctx, p, rest)
	return err
}

// Discover returns the number of tools of a server that may be used.
func (r *Registry) Discover(ctx context.Context, p profile.Person, s Server) (tools int, err error) {
	if r.Upstreams == nil {
		return 0, fault.New(fault.Unavailable, "servers cannot be added here")
	}
	all := r.upstreams(ctx, p)
	own := ownedServer{Server: s, owner: p}
	if i := slices.IndexFunc(all, func(u ownedServer) bool { return u.ID == s.ID }); i >= 0 {
		own.space = all[i].space
	}
	space, err := r.connect(ctx, own)
	if err != nil {
		return 0, err
	}
	names, err := r.Upstreams.Discover(ctx, space)
	if len(s.AllowedTools) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(s.AllowedTools, name) })
	}
	return len(names), err
}

// Offered returns the servers that a person's agent may use: the upstreams that exist for the
// person, as changed by the organisation and then by the person. Nil means all, if nothing is
// configured. It waits a while for those that were not tried yet, and says so before, so that
// the first message after a start has their tools.
func (r *Registry) Offered(ctx context.Context, p profile.Person, say func(status string)) ([]agent.Server, error) {
	if r.Upstreams == nil {
		return nil, nil
	}
	chosen := map[string]ownedServer{}
	for _, upstream := range r.upstreams(ctx, p) {
		chosen[upstream.ID] = upstream
	}
	changed := false
	for _, whose := range []profile.Person{profile.Org(p.Org), p} {
		list, err := r.List(ctx, whose)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			chosen[s.ID], changed = ownedServer{Server: s, owner: whose, space: chosen[s.ID].space}, true
		}
	}
	var offered []agent.Server
	var spaces []string
	if changed {
		offered = []agent.Server{}
		order := func(a, b ownedServer) int { return byPriority(a.Server, b.Server) }
		for _, s := range slices.SortedFunc(maps.Values(chosen), order) {
			if !s.Enabled {
				continue
			}
			space, err := r.connect(ctx, s)
			about := agent.Server{Space: space, ID: s.ID, Name: cmp.Or(s.Name, s.ID), Tools: s.AllowedTools}
			if err != nil { // the conversation goes on without it
				about.Problem, about.URL = err.Error(), loggedURL(s.URL)
				offered = append(offered, about)
				continue
			}
			offered = append(offered, about)
			spaces = append(spaces, space)
		}
	} else {
		for _, upstream := range chosen {
			spaces = append(spaces, upstream.space)
		}
	}
	r.Upstreams.Await(ctx, spaces, func(count int) { say(fmt.Sprintf("Connecting to %d server(s)...", count)) })
	return offered, nil
}

// ownedServer is a server and whose it is: the organisation's or the person's.
type ownedServer struct {
	Server
	owner profile.Person
	space string // its namespace, if it is an upstream
}

// loggedURL is the address of a server without secrets.
func loggedURL(address string) string { return redact.Args([]string{address})[0] }

// upstreams returns the upstreams that exist for a person, by their names in the person's
// organisation.
func (r *Registry) upstreams(ctx context.Context, p profile.Person) (list []ownedServer) {
	who := principal.Of(p.With(ctx, principal.Of(ctx)))
	all := map[string]Server{}
	for _, own := range r.Upstreams.All() {
		all[own.ID] = own
	}
	for _, space := range who.Visible(slices.Collect(maps.Keys(all))) {
		own := all[space]
		own.ID, own.Name = who.NameOf(space), who.NameOf(own.Name)
		list = append(list, ownedServer{Server: own, space: space})
	}
	return list
}

// connect returns the namespace of a server, which it connects if it is a person's own. Other
// namespaces than those of upstreams that the person has, and of servers of their own, cannot
// be named: the private ones of other people have names, too.
func (r *Registry) connect(ctx context.Context, s ownedServer) (space string, err error) {
	switch {
	case s.URL != "" && s.Space == "":
		return r.Upstreams.Connect(ctx, s.owner, s.Server)
	case s.space == "":
		return "", fault.New(fault.NotFound, "no upstream %q", s.ID)
	default:
		return s.space, nil
	}
}

// storedServer is a server as it is stored. A token is encrypted, and bound to its owner and
// URL; those of upstreams are stored with them.
type storedServer struct {
	bareServer
	Namespace string `json:"namespace,omitempty"`
	Sealed    []byte `json:"sealedToken,omitempty"`
}

// bareServer is a Server without its UnmarshalJSON.
type bareServer Server

func (r *Registry) sealed(p profile.Person, s Server) (storedServer, error) {
	k := storedServer{bareServer: bareServer(s), Namespace: s.Space}
	if s.Space != "" {
		k.URL, k.AuthToken = "", ""
	}
	if k.AuthToken == "" {
		return k, nil
	}
	if r.Secrets.Key == nil {
		return k, fault.New(fault.Unavailable, "tokens of servers cannot be stored here")
	}
	k.AuthToken = ""
	var err error
	k.Sealed, err = r.Secrets.Seal(s.AuthToken, aboutToken(p, s)...)
	return k, err
}

// unsealed returns the server with its token, or without it if it cannot be decrypted,
// so that the server can still be removed or changed.
func (r *Registry) unsealed(ctx context.Context, p profile.Person, k storedServer) Server {
	s := Server(k.bareServer)
	s.Space, s.AuthToken = k.Namespace, ""
	if len(k.Sealed) == 0 || r.Secrets.Key == nil {
		return s
	}
	if err := r.Secrets.Open(k.Sealed, &s.AuthToken, aboutToken(p, s)...); err != nil {
		r.Log.WarnContext(ctx, "decrypt token of a server", "org", p.Org, "user_id", p.User, "server", s.ID, "error", err, "hint", fault.HintOf(err))
	}
	return s
}

// Reseal encrypts the tokens of all servers with the first key, and returns how many were
// encrypted with another.
func (r *Registry) Reseal(ctx context.Context) (changed int, err error) {
	owners, err := r.document.Owners(ctx)
	for _, p := range owners {
		count := 0
		_, failed := r.document.Change(ctx, p, func(list *[]storedServer) error {
			count = 0
			for i := range *list {
				k := &(*list)[i]
				if fresh, err := r.Secrets.Reseal(k.Sealed, aboutToken(p, Server(k.bareServer))...); err == nil && fresh != nil {
					k.Sealed = fresh
					count++
				}
			}
			return nil
		})
		changed, err = changed+count, errors.Join(err, failed)
	}
	return changed, err
}

func aboutToken(p profile.Person, s Server) []string {
	return []string{"server of a chat", p.Org, p.User, s.ID, s.URL}
}
