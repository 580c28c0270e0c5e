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

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Peer is one upstream with everything it can do, not only its tools. It speaks
// the legacy protocol to its users, whatever era the server has. It stays usable
// when the spec changes; once the upstream is removed, it returns not_found.
type Peer struct {
	manager *Manager
	name    string
	who     *principal.Principal // whose connection it uses; nil: that of the principal of a request
}

// For is the upstream as one principal reaches it, also in what happens outside of
// requests.
func (p *Peer) For(who principal.Principal) *Peer { return &Peer{p.manager, p.name, &who} }

// as is ctx with the principal that the peer is for. A request of another client of the
// same principal keeps its own.
func (p *Peer) as(ctx context.Context) context.Context {
	if p.who == nil || principal.Of(ctx).LoginOwner() == p.who.LoginOwner() {
		return ctx
	}
	return principal.WithShared(ctx, p.who)
}

// Call relays a tool call. params are those of the request, from which call was
// made. Its result and errors are like those of Request. A modern client that did not
// declare tasks is refused a call that must be one, as the server would do; Manager.Call
// waits for the result.
func (p *Peer) Call(ctx context.Context, call tool.Call, params json.RawMessage) (tool.Result, error) {
	call.Ref.Space = p.name
	strict := call.Caller != nil && call.Caller.Stateless && call.Task == nil
	return p.manager.callTool(p.as(ctx), call, params, strict)
}

// Find finds one of its tools in the list that is known.
func (p *Peer) Find(ctx context.Context, name string) (tool.Info, bool) {
	return p.manager.Find(p.as(ctx), tool.Ref{Space: p.name, Name: name})
}

// Request relays any other request with raw params. It returns the raw result
// without the protocol's keys in its _meta. An error that the server sent is a
// *wire.Error in the chain. caller may be nil.
func (p *Peer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	var result json.RawMessage
	ctx = p.as(ctx)
	err := p.manager.with(ctx, p.name, func(c *connection) (err error) {
		result, err = c.relay(ctx, method, params, caller)
		return err
	})
	return result, err
}

// Describe returns what the server says about itself, or last said if it is
// disconnected.
func (p *Peer) Describe(ctx context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error) {
	c, err := p.manager.connectionFor(p.as(ctx), p.name)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.known.stored().Server == "" {
		if _, err = c.waitForSession(ctx, nil, new(time.Time)); err != nil {
			return nil, nil, nil, err
		}
	}
	stored := c.known.stored()
	return stored.Capabilities, stored.ServerInfo, stored.Instructions, nil
}

// Watch calls f with every notification of the server that belongs to no call, until stop,
// also after the connection was replaced. f must not block.
func (p *Peer) Watch(f func(method string, params json.RawMessage)) (stop func()) {
	key := connectionKey{name: p.name}
	if p.who != nil && p.manager.Personal(p.name) {
		key.owner = p.who.LoginOwner()
	}
	return p.manager.watchers.add(key, f)
}

// watchers are told what servers send that belongs to no call.
type watchers struct {
	mu   sync.Mutex
	list map[connectionKey]map[*watcher]bool
}

type watcher struct {
	tell func(method string, params json.RawMessage)
}

func (w *watchers) add(key connectionKey, f func(string, json.RawMessage)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &watcher{f}
	if w.list[key] == nil {
		w.list[key] = map[*watcher]bool{}
	}
	w.list[key][one] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.list[key], one); len(w.list[key]) == 0 {
			delete(w.list, key)
		}
	}
}

func (w *watchers) tell(key connectionKey, method string, params json.RawMessage) {
	w.mu.Lock()
	list := slices.Collect(maps.Keys(w.list[key]))
	w.mu.Unlock()
	for _, one := range list {
		one.tell(method, params)
	}
}

// notified takes notifications of the server that belong to no call.
func (c *connection) notified(method string, params json.RawMessage) {
	switch method {
	case wire.NoteToolsChanged:
		signal(c.toolsChanged)
	case wire.NotePromptsChanged, wire.NoteResourcesChanged:
		signal(c.offeringChanged)
	case wire.NoteTask, wire.NoteTaskStatus:
		c.followed.note(params)
		return
	}
	c.watchers.tell(c.key(), method, params)
}

// relay makes a request, with the side effects that it has on the connection.
func (c *connection) relay(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	r := &outcall{method: method, params: params, meta: wire.Meta(params), caller: caller}
	if r.params == nil {
		r.params = json.RawMessage(`{}`)
	}
	if err := c.spec.Load().checkOffered(method, params); err != nil {
		return nil, err
	}
	switch method {
	case wire.MethodToolsList:
		result, err := c.request(ctx, r, true)
		if fault.CodeOf(err) == fault.Unavailable && rawjson.Lacks(r.params, "cursor") {
			result, err = c.lastTools(err)
		}
		return c.filterTools(result), err
	case wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodSkillsList:
		result, err := c.request(ctx, r, true)
		return c.filterOffering(method, result), err
	case wire.MethodSkillsGet:
		return c.getSkill(ctx, r)
	case wire.MethodSubscribe, wire.MethodUnsubscribe:
		return c.subscribe(ctx, r)
	case wire.MethodSetLevel:
		level, _ := rawjson.GetText(params, "level")
		c.restored.setLogLevel(level)
	}
	r.about, _ = wire.NameOf(method, params)
	result, err := c.request(ctx, r, repeatable(method))
	if err == nil && method == wire.MethodResourcesRead {
		err = c.checkSkillFile(r.about, result)
	}
	return result, err
}

// lastTools is the list that the server last sent, as one page, for callers who cannot wait
// any longer for it; err if there is none. Other lists have these tools too, as stale.
func (c *connection) lastTools(err error) (json.RawMessage, error) {
	known := c.known.list()
	if len(known) == 0 {
		return nil, err
	}
	return rawjson.Set(nil, "tools", rawjson.List(definitions(known))), nil
}

// repeatable reports whether a request of that method may be repeated if its
// outcome is unknown.
func repeatable(method string) bool {
	return strings.HasSuffix(method, "/list") || strings.HasSuffix(method, "/get") || strings.HasSuffix(method, "/read") ||
		method == wire.MethodComplete || method == wire.MethodPing || method == wire.MethodSetLevel
}

// filterTools removes the tools that the spec forbids from a raw list.
func (c *connection) filterTools(result json.RawMessage) json.RawMessage {
	spec := c.spec.Load()
	if result == nil || !spec.restricts() {
		return result
	}
	raw, _ := rawjson.Get(result, "tools")
	items, _ := rawjson.Items(raw)
	return rawjson.Set(result, "tools", rawjson.List(slices.DeleteFunc(items, func(item json.RawMessage) bool {
		name, _ := rawjson.GetText(item, "name")
		hints, _ := parseHints(item, "")
		return !spec.allows(name, hints)
	})))
}

// subscribe shares one subscription among all subscribers of a resource: the first
// makes it, and the last ends it.
func (c *connection) subscribe(ctx context.Context, r *outcall) (json.RawMessage, error) {
	uri, ok := rawjson.GetText(r.params, "uri")
	if !ok {
		return nil, fault.New(fault.InvalidParams, "%s without a uri", r.method)
	}
	if !c.restored.subscribe(uri, r.method == wire.MethodSubscribe) {
		return json.RawMessage(`{}`), nil
	}
	return c.request(ctx, r, true)
}

// Instructions returns what a server says about its use, or last said; "" if it says
// nothing or was never connected.
func (m *Manager) Instructions(name string) string {
	c, err := m.connection(name)
	if err != nil {
		return ""
	}
	text, _ := rawjson.Text(c.known.stored().Instructions)
	return text
}

// openSubscription subscribes to a modern server's notifications and keeps the
// subscription open. It returns when the server has acknowledged it, or after
// listenTimeout.
func (s *session) openSubscription(ctx context.Context, hooks Hooks) {
	if s.era != wire.Modern {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	s.mu.Lock()
	s.acked = func() {
		if ctx.Err() != nil { // not the first time: notifications may have been lost in between
			hooks.Relist()
		}
		cancel()
	}
	s.mu.Unlock()
	started := s.life.run(func(life context.Context) { s.keepSubscription(life, hooks); cancel() })
	if started && s.subscriptionFilter(nil) != nil {
		<-ctx.Done()
	}
}

// keepSubscription opens the subscription again whenever it ends, until ctx ends
// or the server refuses it.
func (s *session) keepSubscription(ctx context.Context, hooks Hooks) {
	for failures := 1; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := s.subscribe(ctx)
		var refused *wire.Error
		switch {
		case errors.Is(err, errResubscribe):
			failures = 0
			continue
		case ctx.Err() != nil || errors.As(err, &refused):
			return // refused: it has no subscriptions, whatever it declared
		}
		if time.Since(began) > time.Second {
			failures = 1
		}
		hooks.CheckHealth()
		_ = clock.Real().Sleep(ctx, backoff.Policy{}.Delay(failures))
	}
}

// errResubscribe ends a subscription whose list of resources has changed.
var errResubscribe = errors.New("subscribed resources have changed")

// subscribe opens one subscription and returns when it ends. While there is
// nothing to subscribe to, it waits for that.
func (s *session) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	notifications := s.subscriptionFilter(cancel)
	if notifications == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	id := wire.IntID(s.ids.Add(1))
	params := rawjson.Set(json.RawMessage(`{}`), "notifications", notifications)
	answer, err := s.transport.Call(ctx, s.outgoing(&outcall{method: wire.MethodListen}, id, params))
	switch {
	case err != nil && ctx.Err() != nil:
		s.cancelRequest(id)
		return context.Cause(ctx)
	case err != nil:
		return err
	case answer.Error != nil:
		return answer.Error
	}
	return nil
}

// subscriptionFilter is what to subscribe to, nil for nothing. resubscribe, unless
// nil, is called when that changes.
func (s *session) subscriptionFilter(resubscribe context.CancelCauseFunc) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if resubscribe != nil {
		s.resubscribe = resubscribe
	}
	var notifications json.RawMessage
	for _, name := range [3]string{"tools", "prompts", "resources"} {
		if s.hasCapability(name, "listChanged") {
			notifications = rawjson.Set(notifications, name+"ListChanged", json.RawMessage("true"))
		}
	}
	if len(s.subscriptions) > 0 {
		uris := []byte{'['}
		for i, uri := range slices.Sorted(maps.Keys(s.subscriptions)) {
			if i > 0 {
				uris = append(uris, ',')
			}
			uris = rawjson.AppendText(uris, uri)
		}
		notifications = rawjson.Set(notifications, "resourceSubscriptions", append(uris, ']'))
	}
	return notifications
}

// setResourceSubscription subscribes to the changes of a resource, or ends that.
func (s *session) setResourceSubscription(uri string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions[uri] == on {
		return
	}
	if on {
		s.subscriptions[uri] = true
	} else {
		delete(s.subscriptions, uri)
	}
	if s.resubscribe != nil {
		s.resubscribe(errResubscribe)
	}
}
