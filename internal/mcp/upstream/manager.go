// Package upstream connects to MCP servers of either era, over HTTP, HTTP+SSE,
// child processes, ZeroMQ or custom transports. The Manager takes the list of
// desired servers, connects to them, reconnects when a connection is lost, and
// serves their last known tools meanwhile. Results are passed on as the servers
// wrote them.
//
// README.md says which file answers which question. A call takes this path, in call.go
// from top to bottom: Manager.Call finds the connection of the namespace,
// connection.callTool checks that the tool is allowed and counts the call,
// connection.request waits for a session and retries, session.request applies the
// timeout and answers questions of the server, session.exchange matches the
// response to the request, and Transport.Call sends the message.
//
// Locks: those of a connection's parts may be taken while Manager.mu is held, never the other
// way round. None of them is held while another is taken.
package upstream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Manager keeps connections to the desired upstreams. It is safe for concurrent
// use; only calls, Refresh and Close wait for a server.
type Manager struct {
	*shared

	mu         sync.Mutex
	closed     bool
	generation uint64
	desired    map[string]Spec
	running    map[string]*connection
	people     map[string]map[string]*connection // of single principals, by upstream and owner
	stopping   map[connectionKey]chan struct{}   // closed when the last connection of that name has ended
	measured   metric.Registration
	wg         sync.WaitGroup

	personalUpstreams atomic.Int64 // how many have connections of single principals

	toolsByUpstream [][]tool.Info // from which allTools was made
	allTools        []tool.Info   // what Tools last returned
}

// New makes a manager without upstreams. Close ends it.
func New(o Options) *Manager {
	m := &Manager{
		shared:   newShared(o),
		desired:  map[string]Spec{},
		running:  map[string]*connection{},
		people:   map[string]map[string]*connection{},
		stopping: map[connectionKey]chan struct{}{},
	}
	m.measured = m.measureStates()
	return m
}

// Add adds or changes an upstream. It returns at once, whether the server can be
// reached or not. Adding the same spec again does nothing, and a changed spec
// reconnects only if it must.
func (m *Manager) Add(spec Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fault.New(fault.Unavailable, "add upstream %s: shutting down", spec.Name)
	}
	m.desired[spec.Name] = spec
	m.reconcile()
	return nil
}

// Remove removes an upstream: its connection attempts, calls and processes end. It
// reports whether there was one.
func (m *Manager) Remove(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.desired[name]
	delete(m.desired, name)
	m.reconcile()
	return found
}

// Set replaces all upstreams. A spec that is not valid is named in the error, and
// an upstream of that name stays as it is.
func (m *Manager) Set(specs []Spec) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fault.New(fault.Unavailable, "set upstreams: shutting down")
	}
	var invalid []error
	desired := map[string]Spec{}
	for _, spec := range specs {
		err := spec.Validate()
		if _, twice := desired[spec.Name]; err == nil && twice {
			err = fault.New(fault.InvalidParams, "upstream %s is listed twice", spec.Name)
		}
		if err == nil {
			desired[spec.Name] = spec
			continue
		}
		invalid = append(invalid, err)
		if old, ok := m.desired[spec.Name]; ok && desired[spec.Name].Name == "" {
			desired[spec.Name] = old
		}
	}
	m.desired = desired
	m.reconcile()
	return errors.Join(invalid...)
}

// reconcile starts, stops and changes connections until they match the desired
// specs: first it stops, then it goes by name; m.mu is held. It does not wait.
func (m *Manager) reconcile() {
	for _, name := range slices.Sorted(maps.Keys(m.running)) {
		if _, wanted := m.desired[name]; !wanted {
			m.stop(name, errRemoved)
			m.stopPeople(name, errRemoved)
			m.opts.Events.PublishAbout(name, Removed{Upstream: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.desired)) {
		spec, c := m.desired[name], m.running[name]
		switch {
		case c == nil:
			m.start(spec, false)
		case !spec.sameConnection(*c.spec.Load()):
			m.replace(name, spec)
		case !spec.Equal(*c.spec.Load()):
			c.adjust(spec)
			m.adjustPeople(spec)
		}
	}
}

// replace makes a new connection in place of the one of that name; m.mu is held.
func (m *Manager) replace(name string, spec Spec) {
	old := m.stop(name, errReplaced)
	now := m.start(spec, true)
	now.inheritFrom(old)
	m.restartPeople(now)
}

func (m *Manager) start(spec Spec, replaces bool) *connection {
	m.generation++
	c := newConnection(m.shared, spec, m.generation)
	c.replaces = replaces
	m.running[spec.Name] = c
	if c.personal {
		m.personalUpstreams.Add(1)
	}
	if m.opts.OnDemand {
		c.loadCache() // a command may look for tools right away
	}
	m.launch(c)
	return c
}

// launch runs a connection as soon as the last one of the same name and owner has ended,
// so that two processes never use the same files; m.mu is held.
func (m *Manager) launch(c *connection) {
	before, ok := m.stopping[c.key()]
	if !ok {
		before = make(chan struct{})
		close(before)
	}
	m.wg.Go(func() { c.run(c.life.ctx, before) })
}

// stop ends the connection of an upstream without waiting for it; m.mu is held.
func (m *Manager) stop(name string, why error) *connection {
	c := m.running[name]
	delete(m.running, name)
	if c.personal {
		m.personalUpstreams.Add(-1)
	}
	m.finish(c, why)
	return c
}

// finish ends a connection. The next one waits until it has ended; m.mu is held.
func (m *Manager) finish(c *connection, why error) {
	key := c.key()
	m.stopping[key] = c.stopped
	c.stop(why)
	m.wg.Go(func() {
		<-c.stopped
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.stopping[key] == c.stopped {
			delete(m.stopping, key)
		}
	})
}

// Close ends all connections and waits until everything they started has ended.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.desired = map[string]Spec{}
	for name := range m.running {
		m.stop(name, errShutDown)
		m.stopPeople(name, errShutDown)
	}
	m.mu.Unlock()
	_ = m.measured.Unregister() // never fails in the SDK
	m.wg.Wait()
}

// Await returns when done accepts the status of an upstream, the upstream was
// removed, or ctx ends. The manager must publish its events on bus.
func (m *Manager) Await(ctx context.Context, bus *event.Bus, name string, done func(Status) bool) {
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.*"}})
	defer sub.Close()
	for {
		if s, ok := m.Status(name); !ok || done(s) {
			return
		}
		if _, err := sub.Next(ctx); err != nil {
			return
		}
	}
}

var _ tool.Source = (*Manager)(nil)

// Tools implements tool.Source: the tools of all upstreams, sorted by namespace
// and name. It never waits for a server; the last known tools of one that is
// disconnected are marked as stale.
func (m *Manager) Tools(context.Context) ([]tool.Info, error) {
	list := m.connections()
	parts := make([][]tool.Info, len(list))
	for i, c := range list {
		parts[i] = c.known.visible()
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
	owner := ""
	if c.personal {
		owner = principal.Of(ctx).LoginOwner()
	}
	return c.known.find(owner, ref.Name)
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
		c.phase.retryNow()
		s, err := c.waitForSession(ctx, nil, new(time.Time))
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
		c.phase.wakeUp()
	}
}

// Retry makes an attempt at once if the server is not connected, because there are
// new credentials or somebody asks for it.
func (m *Manager) Retry(name string) {
	c, err := m.connection(name)
	if err != nil {
		return
	}
	c.phase.retryNow()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, own := range m.people[name] {
		own.phase.retryLogin()
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
	m.replace(name, *c.spec.Load())
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
