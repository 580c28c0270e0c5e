package upstream

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// rootsSource answers roots/list where no caller does.
type rootsSource interface {
	// roots is the answer to a request that belongs to no call.
	roots(ctx context.Context) json.RawMessage
	// configuredRoots is the answer of the configuration; nil if it has none.
	configuredRoots() json.RawMessage
}

var noRoots = json.RawMessage(`{"roots":[]}`)

// rootsTimeout is how long a client may take to list its roots outside of a call.
const rootsTimeout = 5 * time.Second

// roots are those of the only client that uses the server, or else of the configuration.
func (c *connection) roots(ctx context.Context) json.RawMessage {
	if client := c.clients.only(); client != nil {
		ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
		defer cancel()
		roots, err := client.Roots(ctx)
		if err == nil && rawjson.IsObject(roots) {
			return roots
		}
		c.log.DebugContext(ctx, "roots of the client", "error", err)
	}
	if configured := c.configuredRoots(); configured != nil {
		return configured
	}
	return noRoots
}

func (c *connection) configuredRoots() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return listRoots(c.spec.Roots)
}

// listRoots is the result of roots/list for paths and file URIs; nil for none.
func listRoots(roots []string) json.RawMessage {
	if len(roots) == 0 {
		return nil
	}
	list := []byte{'['}
	for i, root := range roots {
		if i > 0 {
			list = append(list, ',')
		}
		uri := rootURI(root)
		entry := rawjson.SetText(rawjson.SetText(nil, "uri", uri.String()), "name", path.Base(uri.Path))
		list = append(list, entry...)
	}
	return rawjson.Set(nil, "roots", append(list, ']'))
}

// rootURI is the file URI of a path or of a URI; ~ is our home folder.
func rootURI(root string) *url.URL {
	if u, err := url.Parse(root); err == nil && u.Scheme == "file" {
		return u
	}
	if root == "~" || strings.HasPrefix(root, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			root = home + root[1:]
		}
	}
	if absolute, err := filepath.Abs(root); err == nil {
		root = absolute
	}
	root = filepath.ToSlash(root)
	if !strings.HasPrefix(root, "/") { // a drive letter
		root = "/" + root
	}
	return &url.URL{Scheme: "file", Path: root}
}

// replyRoots answers roots/list of a server: with the roots of the client whose call it
// belongs to, or else with those of the connection.
func (s *session) replyRoots(ctx context.Context, call wire.ID, question tool.Question) (json.RawMessage, error) {
	p, count := s.callFor(call, func(c *tool.Caller) bool { return canAnswer(c, wire.MethodRoots) })
	switch {
	case p != nil:
		return p.ask(ctx, question)
	case s.source == nil:
		return noRoots, nil
	case call == "" && count == 0:
		return s.source.roots(ctx), nil
	}
	if configured := s.source.configuredRoots(); configured != nil {
		return configured, nil
	}
	return noRoots, nil
}

// clients are the clients with roots that have used a server in sessions that still last.
type clients struct {
	mu   sync.Mutex
	list map[tool.Client]bool // true: it has announced other roots
}

// add adds the client of a request. Outside of its own calls, only the roots of clients
// that may do everything are used: servers such as server-filesystem serve whatever roots
// they are given.
func (l *clients) add(ctx context.Context, caller *tool.Caller) {
	if caller == nil || caller.Client == nil || l.has(caller.Client) ||
		!canAnswer(caller, wire.MethodRoots) || !principal.Of(ctx).Admin() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prune()
	if l.list == nil {
		l.list = map[tool.Client]bool{}
	}
	l.list[caller.Client] = false
}

// announce records that a client has announced other roots, and reports whether that is
// the first time.
func (l *clients) announce(client tool.Client) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.list[client]
	l.list[client] = true
	return !before
}

func (l *clients) has(client tool.Client) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.list[client]
	return ok
}

// only is the client if exactly one is connected, or else nil.
func (l *clients) only() (one tool.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prune()
	for client := range l.list {
		switch {
		case !client.Connected():
		case one != nil:
			return nil
		default:
			one = client
		}
	}
	return one
}

// prune removes clients whose sessions have ended; l.mu is held.
func (l *clients) prune() {
	for client := range l.list {
		select {
		case <-client.Ended():
			delete(l.list, client)
		default:
		}
	}
}

// RootsChanged passes on that a client's roots have changed, to the servers that it uses.
func (m *Manager) RootsChanged(client tool.Client) {
	for _, c := range m.everyConnection() {
		if !c.clients.has(client) {
			continue
		}
		c.sendRootsChanged()
		if c.clients.announce(client) {
			c.life.run(func(ctx context.Context) { c.restoreRoots(ctx, client) })
		}
	}
}

// restoreRoots tells the server that its roots have changed when a client leaves that has
// announced other roots.
func (c *connection) restoreRoots(ctx context.Context, client tool.Client) {
	select {
	case <-client.Ended():
		c.sendRootsChanged()
	case <-ctx.Done():
	}
}

// sendRootsChanged tells the server that roots/list has another answer. A modern server
// asks anew in every call.
func (c *connection) sendRootsChanged() {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil || s.era != wire.Legacy {
		return
	}
	s.life.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
		defer cancel()
		if err := s.transport.Send(ctx, wire.Notification(wire.NoteRootsChanged, nil)); err != nil {
			c.log.DebugContext(ctx, "changed roots were not passed on", "error", err)
		}
	})
}
