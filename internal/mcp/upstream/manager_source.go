package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

var _ tool.Source = (*Manager)(nil)

// Call implements tool.Source.
func (m *Manager) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	params := append(make([]byte, 0, len(call.Ref.Name)+len(args)+32), `{"name":`...)
	params = append(rawjson.AppendText(params, call.Ref.Name), `,"arguments":`...)
	params = append(append(params, args...), '}')
	return m.callTool(ctx, call, params, false)
}

// callTool calls a tool over the connection of its namespace, and over the next
// one if the first is replaced before it has sent the call. With strict, a call that must
// be a task is refused unless the caller takes one.
func (m *Manager) callTool(ctx context.Context, call tool.Call, params json.RawMessage, strict bool) (tool.Result, error) {
	for {
		var result tool.Result
		c, err := m.connectionFor(ctx, call.Ref.Space)
		if err == nil {
			result, err = c.callTool(ctx, call, params, strict)
		}
		if !errors.Is(err, errRemoved) {
			return result, err
		}
	}
}

// with is callTool for other operations.
func (m *Manager) with(ctx context.Context, name string, do func(*connection) error) error {
	for {
		c, err := m.connectionFor(ctx, name)
		if err == nil {
			err = do(c)
		}
		if !errors.Is(err, errRemoved) {
			return err
		}
	}
}

// Tools implements tool.Source: the tools of all upstreams, sorted by namespace
// and name. It never waits for a server; the last known tools of one that is
// disconnected are marked as stale.
func (m *Manager) Tools(context.Context) ([]tool.Info, error) {
	list := m.connections()
	parts := make([][]tool.Info, len(list))
	for i, c := range list {
		parts[i] = c.visibleTools()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.EqualFunc(parts, m.toolsByUpstream, sameSlice) {
		m.toolsByUpstream, m.allTools = parts, slices.Concat(parts...)
	}
	return m.allTools, nil
}

// sameSlice reports whether two slices are the same, not only equal.
func sameSlice(a, b []tool.Info) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Find returns one tool by its name at its upstream, as the principal of ctx has it.
func (m *Manager) Find(ctx context.Context, ref tool.Ref) (tool.Info, bool) {
	c, err := m.connection(ref.Space)
	if err != nil {
		return tool.Info{}, false
	}
	list := ""
	if c.personal {
		list = principal.Of(ctx).LoginOwner()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listFor(list).find(ref.Name)
}

// Namespaces lists the names of the upstreams, sorted.
func (m *Manager) Namespaces() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.running))
}

// Has reports whether there is an upstream of that name.
func (m *Manager) Has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.running[name]
	return ok
}

// Status returns the state of an upstream; ok is false if there is none of that
// name.
func (m *Manager) Status(name string) (Status, bool) {
	c, err := m.connection(name)
	if err != nil {
		return Status{}, false
	}
	return m.withPeople(c.status()), true
}

// List returns the state of all upstreams, sorted by name.
func (m *Manager) List() []Status {
	connections := m.connections()
	list := make([]Status, len(connections))
	for i, c := range connections {
		list[i] = m.withPeople(c.status())
	}
	return list
}

// Refresh fetches the tools of an upstream again. It waits for a server that is
// disconnected, as a call does.
func (m *Manager) Refresh(ctx context.Context, name string) error {
	if m.Personal(name) {
		m.Retry(name)
	}
	return m.with(ctx, name, func(c *connection) error {
		c.retryNow()
		s, err := c.waitForSession(ctx, new(time.Time))
		if err != nil {
			return err
		}
		if err := c.refresh(ctx, s); err != nil {
			c.handleFailure(ctx, s, err)
			return c.callError(ctx, err, "")
		}
		return nil
	})
}

// Wake starts an upstream that is asleep. It does not wait for it.
func (m *Manager) Wake(name string) {
	if c, err := m.connection(name); err == nil {
		c.wakeUp()
	}
}

// Retry makes an attempt at once if the server is not connected, because there are
// new credentials or somebody asks for it.
func (m *Manager) Retry(name string) {
	c, err := m.connection(name)
	if err != nil {
		return
	}
	c.retryNow()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, own := range m.people[name] {
		own.retryLogin()
	}
}

// Restart ends the connection of an upstream, and with it its program, and connects
// again. Its tools stay known.
func (m *Manager) Restart(name string) error {
	c, err := m.connection(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.running[name] != c { // somebody else was faster
		return nil
	}
	spec := c.currentSpec()
	old := m.stop(name)
	now := m.start(spec)
	now.inheritFrom(old)
	m.restartPeople(now)
	return nil
}

// Peer returns the upstream of that name with all that it can do, for the principal of
// each request.
func (m *Manager) Peer(name string) (*Peer, bool) {
	if _, err := m.connection(name); err != nil {
		return nil, false
	}
	return &Peer{manager: m, name: name}, true
}

// Personal reports whether each principal has a connection of its own to an upstream.
func (m *Manager) Personal(name string) bool {
	c, err := m.connection(name)
	return err == nil && c.personal
}

func (m *Manager) connection(name string) (*connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.running[name]; ok {
		return c, nil
	}
	return nil, fault.New(fault.NotFound, "no upstream %q", name).
		WithHint("connected are: %s", strings.Join(slices.Sorted(maps.Keys(m.running)), ", "))
}

// connections lists the connections in the order of their names.
func (m *Manager) connections() []*connection {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*connection, 0, len(m.running))
	for _, name := range slices.Sorted(maps.Keys(m.running)) {
		list = append(list, m.running[name])
	}
	return list
}
