// Package upstream connects to MCP servers of either era, over HTTP, HTTP+SSE,
// child processes, ZeroMQ or custom transports. The Manager takes the list of
// desired servers, connects to them, reconnects when a connection is lost, and
// serves their last known tools meanwhile. Results are passed on as the servers
// wrote them.
//
// A call takes this path: Manager.Call finds the connection of the namespace,
// connection.callTool checks that the tool is allowed and counts the call,
// connection.request waits for a session and retries, session.request applies the
// timeout and answers questions of the server, session.exchange matches the
// response to the request, and Transport.Call sends the message.
//
// Locks: a connection's mu may be taken while Manager.mu is held, never the other
// way round. Events may be published while a connection's mu is held.
package upstream

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Manager keeps connections to the desired upstreams. It is safe for concurrent
// use; only calls, Refresh and Close wait for a server.
type Manager struct {
	opts Options

	mu          sync.Mutex
	closed      bool
	generation  uint64
	desired     map[string]Spec
	running     map[string]*connection
	people      map[string]map[string]*connection // of single principals, by upstream and owner
	stopping    map[connectionKey]chan struct{}   // closed when the last connection of that name has ended
	watchers    map[connectionKey]map[int]func(string, json.RawMessage)
	lastWatcher int
	measured    metric.Registration
	wg          sync.WaitGroup

	personalUpstreams atomic.Int64 // how many have connections of single principals

	toolsByUpstream [][]tool.Info // from which allTools was made
	allTools        []tool.Info   // what Tools last returned
}

// New makes a manager without upstreams. Close ends it.
func New(o Options) *Manager {
	m := &Manager{
		opts:     o.withDefaults(),
		desired:  map[string]Spec{},
		running:  map[string]*connection{},
		people:   map[string]map[string]*connection{},
		stopping: map[connectionKey]chan struct{}{},
		watchers: map[connectionKey]map[int]func(string, json.RawMessage){},
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
	m.desired[spec.Name] = spec.clone()
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
			desired[spec.Name] = spec.clone()
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
// specs; m.mu is held. It does not wait.
func (m *Manager) reconcile() {
	running := make(map[string]Spec, len(m.running))
	for name, c := range m.running {
		running[name] = c.currentSpec()
	}
	for _, a := range reconcile(m.desired, running) {
		switch a.operation {
		case stop:
			m.stop(a.name)
			m.stopPeople(a.name)
			m.opts.Events.PublishAbout(a.name, Removed{Upstream: a.name})
		case start:
			m.start(a.spec)
		case replace:
			old := m.stop(a.name)
			now := m.start(a.spec)
			now.inheritFrom(old)
			m.restartPeople(now)
		case adjust:
			m.running[a.name].adjust(a.spec)
			m.adjustPeople(a.spec)
		}
	}
}

func (m *Manager) start(spec Spec) *connection {
	m.generation++
	c := newConnection(&m.opts, spec, m.generation)
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
	key := connectionKey{c.name, c.owner}
	for id, watch := range m.watchers[key] {
		c.watchers[id] = watch
	}
	before, ok := m.stopping[key]
	if !ok {
		before = make(chan struct{})
		close(before)
	}
	m.wg.Go(func() { c.run(c.life.ctx, before) })
}

// connectionKey identifies a connection; the owner is empty for one that is not a
// principal's.
type connectionKey struct{ name, owner string }

// stop ends the connection of an upstream without waiting for it; m.mu is held.
func (m *Manager) stop(name string) *connection {
	c := m.running[name]
	delete(m.running, name)
	if c.personal {
		m.personalUpstreams.Add(-1)
	}
	m.finish(c)
	return c
}

// finish ends a connection. The next one waits until it has ended; m.mu is held.
func (m *Manager) finish(c *connection) {
	key := connectionKey{c.name, c.owner}
	m.stopping[key] = c.stopped
	c.stop()
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
		m.stop(name)
		m.stopPeople(name)
	}
	m.mu.Unlock()
	_ = m.measured.Unregister() // never fails in the SDK
	m.wg.Wait()
}

// watch registers f with the connection of that name and owner, now and after it is
// replaced.
func (m *Manager) watch(key connectionKey, f func(string, json.RawMessage)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastWatcher++
	id := m.lastWatcher
	if m.watchers[key] == nil {
		m.watchers[key] = map[int]func(string, json.RawMessage){}
	}
	m.watchers[key][id] = f
	m.setWatcher(key, id, f)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers[key], id)
		if len(m.watchers[key]) == 0 {
			delete(m.watchers, key)
		}
		m.setWatcher(key, id, nil)
	}
}

// setWatcher sets or, with nil, removes a watcher of a connection; m.mu is held.
func (m *Manager) setWatcher(key connectionKey, id int, f func(string, json.RawMessage)) {
	c := m.running[key.name]
	if key.owner != "" {
		c = m.people[key.name][key.owner]
	}
	if c != nil {
		c.watch(id, f)
	}
}
