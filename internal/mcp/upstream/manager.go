// Package upstream keeps connections to MCP servers of either era, over HTTP,
// server-sent events, child processes or whatever else is dialled for it. One
// says which servers are wanted; the Manager sees to it that they are there,
// connects again when they went away, and serves their tools meanwhile from what
// it last knew. Results pass through as the servers wrote them.
//
// Locks: Manager.mu may be held while a keeper's is taken, never the other way
// round; a keeper's may be held while events are published.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Manager makes the upstreams that are there those that are wanted. It is safe
// for concurrent use; nothing but calls, Refresh and Close ever waits.
type Manager struct {
	opts Options

	mu          sync.Mutex
	closed      bool
	generation  uint64
	desired     map[string]Spec
	running     map[string]*connection
	stopping    map[string]chan struct{} // closed when the last keeper of that name is gone
	watchers    map[string]map[int]func(string, json.RawMessage)
	lastWatcher int
	wg          sync.WaitGroup

	toolsByUpstream [][]tool.Info // of which joined was made
	allTools        []tool.Info   // what Tools last returned
}

// New makes a manager that keeps nothing yet. Close ends it.
func New(o Options) *Manager {
	return &Manager{
		opts:     o.withDefaults(),
		desired:  map[string]Spec{},
		running:  map[string]*connection{},
		stopping: map[string]chan struct{}{},
		watchers: map[string]map[int]func(string, json.RawMessage){},
	}
}

// Add wants an upstream. It returns at once, whether the server is there or not.
// Adding the same again does nothing; a change reconnects only where it must.
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

// Remove no longer wants an upstream: attempts, calls and processes end. It
// reports whether there was one.
func (m *Manager) Remove(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, there := m.desired[name]
	delete(m.desired, name)
	m.reconcile()
	return there
}

// Set wants exactly these upstreams. Specs that are not valid are left out of
// the change, as they are, and named in the error.
func (m *Manager) Set(specs []Spec) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fault.New(fault.Unavailable, "set upstreams: shutting down")
	}
	var wrong []error
	wanted := map[string]Spec{}
	for _, spec := range specs {
		err := spec.Validate()
		if _, twice := wanted[spec.Name]; err == nil && twice {
			err = fault.New(fault.InvalidParams, "upstream %s is there twice", spec.Name)
		}
		if err == nil {
			wanted[spec.Name] = spec.clone()
			continue
		}
		wrong = append(wrong, err)
		if old, ok := m.desired[spec.Name]; ok && wanted[spec.Name].Name == "" {
			wanted[spec.Name] = old
		}
	}
	m.desired = wanted
	m.reconcile()
	return errors.Join(wrong...)
}

// reconcile does what turns actual into desired; m.mu is held. Nothing here waits.
func (m *Manager) reconcile() {
	actual := make(map[string]Spec, len(m.running))
	for name, c := range m.running {
		actual[name] = c.currentSpec()
	}
	for _, a := range reconcile(m.desired, actual) {
		switch a.operation {
		case stop:
			m.stop(a.name)
			m.opts.Events.Publish(Removed{Upstream: a.name})
		case start:
			m.start(a.spec)
		case replace:
			old := m.stop(a.name)
			m.start(a.spec).inheritFrom(old)
		case adjust:
			m.running[a.name].adjust(a.spec)
		}
	}
}

func (m *Manager) start(spec Spec) *connection {
	m.generation++
	c := newConnection(&m.opts, spec, m.generation)
	for id, watch := range m.watchers[spec.Name] {
		c.watchers[id] = watch
	}
	before, ok := m.stopping[spec.Name]
	if !ok {
		before = make(chan struct{})
		close(before)
	}
	m.running[spec.Name] = c
	m.wg.Go(func() { c.run(c.life.ctx, before) })
	return c
}

// stop lets a keeper go. The next of its name begins when it is gone, so that
// two processes never fight over the same files.
func (m *Manager) stop(name string) *connection {
	c := m.running[name]
	delete(m.running, name)
	m.stopping[name] = c.stopped
	c.stop()
	m.wg.Go(func() {
		<-c.stopped
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.stopping[name] == c.stopped {
			delete(m.stopping, name)
		}
	})
	return c
}

// Close ends all connections and waits until nothing of them is left.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.desired = map[string]Spec{}
	for name := range m.running {
		m.stop(name)
	}
	m.mu.Unlock()
	m.wg.Wait()
}

// Namespaces lists the upstreams that are wanted, sorted.
func (m *Manager) Namespaces() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.running))
}

// Status tells how an upstream is; ok is false when there is none of that name.
func (m *Manager) Status(name string) (Status, bool) {
	c, err := m.connection(name)
	if err != nil {
		return Status{}, false
	}
	return c.status(), true
}

// List tells how all upstreams are, sorted by name.
func (m *Manager) List() []Status {
	keepers := m.connections()
	list := make([]Status, len(keepers))
	for i, c := range keepers {
		list[i] = c.status()
	}
	return list
}

// Refresh fetches the tools of an upstream anew. It waits for a server that is
// unreachableError as a call does.
func (m *Manager) Refresh(ctx context.Context, name string) error {
	return m.with(name, func(c *connection) error {
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

// Peer is the upstream of that name seen whole.
// Has tells whether an upstream is there by that name.
func (m *Manager) Has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.running[name]
	return ok
}

func (m *Manager) Peer(name string) (*Peer, bool) {
	if _, err := m.connection(name); err != nil {
		return nil, false
	}
	return &Peer{manager: m, name: name}, true
}

// Tools implements tool.Source: the tools of all upstreams, sorted by namespace
// and name. It never waits for a server; what one that is away last had is
// marked as stale.
func (m *Manager) Tools(context.Context) ([]tool.Info, error) {
	keepers := m.connections()
	parts := make([][]tool.Info, len(keepers))
	for i, c := range keepers {
		parts[i] = c.visibleTools()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.EqualFunc(parts, m.toolsByUpstream, sameSlice) {
		m.toolsByUpstream, m.allTools = parts, slices.Concat(parts...)
	}
	return m.allTools, nil
}

// Find is what is known of one tool, by its owner's name for it.
func (m *Manager) Find(ref tool.Ref) (tool.Info, bool) {
	c, err := m.connection(ref.Space)
	if err != nil {
		return tool.Info{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.find(ref.Name)
	return info, info.Name != ""
}

// sameSlice tells whether two slices are one.
func sameSlice(a, b []tool.Info) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Call implements tool.Source.
func (m *Manager) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var result tool.Result
	err := m.with(call.Ref.Space, func(c *connection) (err error) {
		result, err = c.call(ctx, call)
		return err
	})
	return result, err
}

// with lets do use the keeper of that name, and the one that took over when the
// first was replaced before it could do anything.
func (m *Manager) with(name string, do func(*connection) error) error {
	for {
		c, err := m.connection(name)
		if err != nil {
			return err
		}
		if err = do(c); !errors.Is(err, errRemoved) {
			return err
		}
	}
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

func (m *Manager) connections() []*connection {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*connection, 0, len(m.running))
	for _, name := range slices.Sorted(maps.Keys(m.running)) {
		list = append(list, m.running[name])
	}
	return list
}

// watch registers f with the upstream of that name, now and in generations to come.
func (m *Manager) watch(name string, f func(string, json.RawMessage)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastWatcher++
	id := m.lastWatcher
	if m.watchers[name] == nil {
		m.watchers[name] = map[int]func(string, json.RawMessage){}
	}
	m.watchers[name][id] = f
	if c, ok := m.running[name]; ok {
		c.watch(id, f)
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers[name], id)
		if len(m.watchers[name]) == 0 {
			delete(m.watchers, name)
		}
		if c, ok := m.running[name]; ok {
			c.watch(id, nil)
		}
	}
}
