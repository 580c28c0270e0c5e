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

	mu         sync.Mutex
	closed     bool
	generation uint64
	desired    map[string]Spec
	actual     map[string]*keeper
	leaving    map[string]chan struct{} // closed when the last keeper of that name is gone
	watchers   map[string]map[int]func(string, json.RawMessage)
	watcher    int
	wg         sync.WaitGroup

	parts  [][]tool.Info // of which joined was made
	joined []tool.Info   // what Tools last returned
}

// New makes a manager that keeps nothing yet. Close ends it.
func New(o Options) *Manager {
	return &Manager{
		opts:     o.withDefaults(),
		desired:  map[string]Spec{},
		actual:   map[string]*keeper{},
		leaving:  map[string]chan struct{}{},
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
	actual := make(map[string]Spec, len(m.actual))
	for name, k := range m.actual {
		actual[name] = k.currentSpec()
	}
	for _, a := range reconcile(m.desired, actual) {
		switch a.verb {
		case stop:
			m.stop(a.name)
			m.opts.Events.Publish(Removed{Upstream: a.name})
		case start:
			m.start(a.spec)
		case swap:
			old := m.stop(a.name)
			m.start(a.spec).inherit(old)
		case adjust:
			m.actual[a.name].adjust(a.spec)
		}
	}
}

func (m *Manager) start(spec Spec) *keeper {
	m.generation++
	k := newKeeper(&m.opts, spec, m.generation)
	for id, watch := range m.watchers[spec.Name] {
		k.watchers[id] = watch
	}
	before, ok := m.leaving[spec.Name]
	if !ok {
		before = make(chan struct{})
		close(before)
	}
	m.actual[spec.Name] = k
	m.wg.Go(func() { k.run(k.life.ctx, before) })
	return k
}

// stop lets a keeper go. The next of its name begins when it is gone, so that
// two processes never fight over the same files.
func (m *Manager) stop(name string) *keeper {
	k := m.actual[name]
	delete(m.actual, name)
	m.leaving[name] = k.gone
	k.retire()
	m.wg.Go(func() {
		<-k.gone
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.leaving[name] == k.gone {
			delete(m.leaving, name)
		}
	})
	return k
}

// Close ends all connections and waits until nothing of them is left.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.desired = map[string]Spec{}
	for name := range m.actual {
		m.stop(name)
	}
	m.mu.Unlock()
	m.wg.Wait()
}

// Namespaces lists the upstreams that are wanted, sorted.
func (m *Manager) Namespaces() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.actual))
}

// Status tells how an upstream is; ok is false when there is none of that name.
func (m *Manager) Status(name string) (Status, bool) {
	k, err := m.keeper(name)
	if err != nil {
		return Status{}, false
	}
	return k.status(), true
}

// List tells how all upstreams are, sorted by name.
func (m *Manager) List() []Status {
	keepers := m.keepers()
	list := make([]Status, len(keepers))
	for i, k := range keepers {
		list[i] = k.status()
	}
	return list
}

// Refresh fetches the tools of an upstream anew. It waits for a server that is
// away as a call does.
func (m *Manager) Refresh(ctx context.Context, name string) error {
	return m.with(name, func(k *keeper) error {
		s, err := k.reach(ctx, new(time.Time))
		if err != nil {
			return err
		}
		if err := k.refresh(ctx, s); err != nil {
			k.judge(ctx, s, err)
			return k.explain(ctx, err, "")
		}
		return nil
	})
}

// Peer is the upstream of that name seen whole.
// Has tells whether an upstream is there by that name.
func (m *Manager) Has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.actual[name]
	return ok
}

func (m *Manager) Peer(name string) (*Peer, bool) {
	if _, err := m.keeper(name); err != nil {
		return nil, false
	}
	return &Peer{manager: m, name: name}, true
}

// Tools implements tool.Source: the tools of all upstreams, sorted by namespace
// and name. It never waits for a server; what one that is away last had is
// marked as stale.
func (m *Manager) Tools(context.Context) ([]tool.Info, error) {
	keepers := m.keepers()
	parts := make([][]tool.Info, len(keepers))
	for i, k := range keepers {
		parts[i] = k.tools()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.EqualFunc(parts, m.parts, sameSlice) {
		m.parts, m.joined = parts, slices.Concat(parts...)
	}
	return m.joined, nil
}

// Find is what is known of one tool, by its owner's name for it.
func (m *Manager) Find(ref tool.Ref) (tool.Info, bool) {
	k, err := m.keeper(ref.Space)
	if err != nil {
		return tool.Info{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	info := k.find(ref.Name)
	return info, info.Name != ""
}

// sameSlice tells whether two slices are one.
func sameSlice(a, b []tool.Info) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Call implements tool.Source.
func (m *Manager) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var result tool.Result
	err := m.with(call.Ref.Space, func(k *keeper) (err error) {
		result, err = k.call(ctx, call)
		return err
	})
	return result, err
}

// with lets do use the keeper of that name, and the one that took over when the
// first was replaced before it could do anything.
func (m *Manager) with(name string, do func(*keeper) error) error {
	for {
		k, err := m.keeper(name)
		if err != nil {
			return err
		}
		if err = do(k); !errors.Is(err, errRemoved) {
			return err
		}
	}
}

func (m *Manager) keeper(name string) (*keeper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.actual[name]; ok {
		return k, nil
	}
	return nil, fault.New(fault.NotFound, "no upstream %q", name).
		WithHint("connected are: %s", strings.Join(slices.Sorted(maps.Keys(m.actual)), ", "))
}

func (m *Manager) keepers() []*keeper {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*keeper, 0, len(m.actual))
	for _, name := range slices.Sorted(maps.Keys(m.actual)) {
		list = append(list, m.actual[name])
	}
	return list
}

// watch registers f with the upstream of that name, now and in generations to come.
func (m *Manager) watch(name string, f func(string, json.RawMessage)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watcher++
	id := m.watcher
	if m.watchers[name] == nil {
		m.watchers[name] = map[int]func(string, json.RawMessage){}
	}
	m.watchers[name][id] = f
	if k, ok := m.actual[name]; ok {
		k.watch(id, f)
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers[name], id)
		if len(m.watchers[name]) == 0 {
			delete(m.watchers, name)
		}
		if k, ok := m.actual[name]; ok {
			k.watch(id, nil)
		}
	}
}
