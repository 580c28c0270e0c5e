package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// serveRelay serves one upstream with all it offers, under its original names.
func (h *Hub) serveRelay(w http.ResponseWriter, r *http.Request) {
	who, name := principal.Of(r.Context()), r.PathValue("namespace")
	namespace := who.Namespace(name, func(space string) bool { return h.opts.Upstreams != nil && h.opts.Upstreams.Has(space) })
	e, ok := h.relayTo(r.Context(), namespace)
	if !ok || !who.CanSee(namespace, "") || h.isOutside(who, namespace) {
		seen := slices.DeleteFunc(who.Visible(h.namespaces()), func(space string) bool { return h.isOutside(who, space) })
		for i := range seen {
			seen[i] = who.NameOf(seen[i])
		}
		refuse(w, http.StatusNotFound, "", fault.New(fault.NotFound, "no upstream named %q", name).
			WithHint("there are: %s", strings.Join(seen, ", ")))
		return
	}
	e.ServeHTTP(w, r)
}

// isOutside tells whether nothing of a namespace is in the set of a principal.
func (h *Hub) isOutside(who principal.Principal, namespace string) bool {
	return who.Set != "" && (h.opts.Sets == nil || !h.opts.Sets.Includes(who, namespace))
}

// serveSet serves /mcp to a client that asks for a set of tools.
func (h *Hub) serveSet(w http.ResponseWriter, r *http.Request) {
	who := principal.Of(r.Context()).InSet(r.PathValue("set"))
	err := error(fault.New(fault.NotFound, "there are no sets of tools"))
	if h.opts.Sets != nil {
		err = h.opts.Sets.Find(who)
	}
	if err != nil {
		refuse(w, http.StatusNotFound, "", err)
		return
	}
	h.local.ServeHTTP(w, r.WithContext(principal.With(r.Context(), who)))
}

func (h *Hub) namespaces() []string {
	if h.opts.Upstreams == nil {
		return nil
	}
	return h.opts.Upstreams.Namespaces()
}

// relayKey identifies the endpoint of an upstream: sessions, subscriptions and notifications
// of one owner never meet those of another.
type relayKey struct{ namespace, owner string }

// relayTo is the endpoint of an upstream. It is made at its first request, and closed at
// the first request after the upstream was removed, or by closeRemoved.
func (h *Hub) relayTo(ctx context.Context, namespace string) (*endpoint, bool) {
	if h.opts.Upstreams == nil {
		return nil, false
	}
	key := relayKey{namespace, h.opts.Upstreams.Owner(ctx, namespace)}
	h.mu.Lock()
	known := h.relays[key]
	h.mu.Unlock()
	if known != nil && h.opts.Upstreams.Has(namespace) {
		return known, true
	}
	peer, found := h.opts.Upstreams.Peer(ctx, namespace)
	h.relaying.Lock()
	defer h.relaying.Unlock()
	h.mu.Lock()
	e := h.relays[key]
	if e != nil && !found {
		delete(h.relays, key)
		defer e.close(ctx)
		e = nil
	}
	h.mu.Unlock()
	if e != nil || !found {
		return e, found
	}
	e = newEndpoint(h, namespace, newRelayBackend(h, namespace, peer))
	e.owner = key.owner
	//nolint:contextcheck // what an upstream tells belongs to no request
	e.stop = peer.Watch(func(method string, params json.RawMessage) { e.changed(method, params, nil) })
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.relays[key] = e
	}
	h.mu.Unlock()
	if closed {
		e.stop()
		return nil, false
	}
	return e, true
}

// closeRemoved closes the endpoints of upstreams that were removed, and that nobody asks for.
func (h *Hub) closeRemoved(ctx context.Context) {
	var removed []*endpoint
	h.mu.Lock()
	for key, e := range h.relays {
		if !h.opts.Upstreams.Has(key.namespace) {
			delete(h.relays, key)
			removed = append(removed, e)
		}
	}
	h.mu.Unlock()
	for _, e := range removed {
		e.close(ctx)
	}
}

// relayBackend serves one upstream.
type relayBackend struct {
	hub       *Hub
	namespace string
	peer      Peer

	subscribing   chan struct{} // holds a token while it subscribes or unsubscribes
	mu            sync.Mutex
	subscriptions map[string]int // number of subscribers, by resource
}

func newRelayBackend(h *Hub, namespace string, peer Peer) *relayBackend {
	return &relayBackend{hub: h, namespace: namespace, peer: peer, subscribing: make(chan struct{}, 1), subscriptions: map[string]int{}}
}

func (r *relayBackend) describe(ctx context.Context) (serverDescription, error) {
	capabilities, info, instructions, err := r.peer.Describe(ctx)
	if err != nil {
		return serverDescription{}, err
	}
	a := serverDescription{capabilities: relayable(capabilities), info: info}
	if r.hub.opts.RelayedTasks != nil && offersTasks(capabilities) {
		extensions, _ := rawjson.Get(a.capabilities, "extensions")
		a.capabilities = rawjson.Set(a.capabilities, "extensions", rawjson.Set(extensions, wire.ExtensionTasks, tasksCapability))
	}
	a.instructions, _ = rawjson.Text(instructions)
	if !rawjson.IsObject(info) {
		a.info = rawjson.SetText(rawjson.SetText(nil, "name", r.namespace), "version", r.hub.opts.Version)
	}
	return a, nil
}

// relayable are an upstream's capabilities without tasks: the hub has its own.
func relayable(capabilities json.RawMessage) json.RawMessage {
	if !rawjson.IsObject(capabilities) {
		return json.RawMessage("{}")
	}
	capabilities = rawjson.Delete(capabilities, "tasks")
	if extensions, ok := rawjson.Get(capabilities, "extensions"); ok {
		capabilities = rawjson.Set(capabilities, "extensions", rawjson.Delete(extensions, wire.ProtocolPrefix+"tasks"))
	}
	return capabilities
}

func (r *relayBackend) serve(ctx context.Context, req *request) (json.RawMessage, error) {
	switch req.method {
	case wire.MethodToolsCall:
		return r.call(ctx, req)
	case wire.MethodTasksGet, wire.MethodTasksUpdate, wire.MethodTasksCancel, wire.MethodTasksList, wire.MethodTasksResult:
		return req.serveTasks(ctx)
	}
	result, err := r.peer.Request(ctx, req.method, r.hub.stripParams(req.params), req.caller())
	var protocol *wire.Error
	switch {
	case err != nil && fault.CodeOf(err) == fault.Upstream && !errors.As(err, &protocol) && !isCore(req.method):
		// Some servers refuse unknown methods with an HTTP status instead of a
		// JSON-RPC error.
		return nil, errNoMethod(req.method)
	case err != nil:
		return nil, err
	case req.method == wire.MethodToolsList && bytes.Contains(result, []byte(`"taskSupport"`)):
		result = withOptionalTasks(result)
	}
	return r.object(req.method, result)
}

// withOptionalTasks is a list of tools in which tasks are not required.
func withOptionalTasks(page json.RawMessage) json.RawMessage {
	raw, _ := rawjson.Get(page, "tools")
	items, _ := rawjson.Items(raw)
	list := []byte{'['}
	for i, item := range items {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, withOptionalTask(item)...)
	}
	return rawjson.Set(page, "tools", append(list, ']'))
}

// call relays a call with its params as they are; the upstream client removes what belongs
// to this hop.
func (r *relayBackend) call(ctx context.Context, req *request) (json.RawMessage, error) {
	var fields [3]json.RawMessage
	rawjson.Pick(req.params, callKeys, fields[:])
	call := tool.Call{
		Ref: tool.Ref{Space: r.namespace, Name: req.name}, Args: fields[0], Meta: req.meta, Caller: req.caller(),
		Task: req.taskRequest(fields[2]),
	}
	params := withoutAnswers(req.params)
	if fields[2] != nil { // call.Task says it
		params = rawjson.Delete(params, "task")
	}
	result, err := req.withLogin(ctx, func() (tool.Result, error) { return r.peer.Call(ctx, call, params) })
	switch {
	case err != nil:
		return toolFailure(ctx, req.name, err)
	case result.Task != "":
		return req.receipt(ctx, result)
	}
	return r.object(req.method, result.Raw)
}

// object checks that a result is an object.
func (r *relayBackend) object(method string, result json.RawMessage) (json.RawMessage, error) {
	if !rawjson.IsObject(result) {
		return nil, fault.New(fault.Upstream, "upstream %s answered %s with no object", r.namespace, method)
	}
	return result, nil
}

// setLevel sets the level of the upstream. An upstream without levels may still log during
// calls; the session's own level filters that.
func (r *relayBackend) setLevel(ctx context.Context, name string) error {
	_, err := r.peer.Request(ctx, wire.MethodSetLevel, rawjson.SetText(nil, "level", name), nil)
	var refused *wire.Error
	if errors.As(err, &refused) && refused.Code == wire.CodeMethodNotFound {
		return nil
	}
	return err
}

// isCore tells whether a relayed method belongs to MCP itself.
func isCore(method string) bool {
	switch method {
	case wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodComplete:
		return true
	}
	return cacheable(method)
}

// subscribe subscribes at the upstream, once for all subscribers of the endpoint.
func (r *relayBackend) subscribe(ctx context.Context, uri string) (release func(), err error) {
	select {
	case r.subscribing <- struct{}{}:
		defer func() { <-r.subscribing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	params := rawjson.SetText(nil, "uri", uri)
	if r.subscribers(uri) == 0 {
		if _, err := r.peer.Request(ctx, wire.MethodSubscribe, params, nil); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscriptions[uri]++
	return sync.OnceFunc(func() { r.release(uri) }), nil //nolint:contextcheck // a subscription outlives the request for it
}

func (r *relayBackend) subscribers(uri string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.subscriptions[uri]
}

// release ends the subscription after the last subscriber has left, unless there is a new one
// by then.
func (r *relayBackend) release(uri string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.subscriptions[uri]--; r.subscriptions[uri] > 0 {
		return
	}
	delete(r.subscriptions, uri)
	r.hub.spawn(func(ctx context.Context) {
		r.subscribing <- struct{}{}
		defer func() { <-r.subscribing }()
		if r.subscribers(uri) > 0 {
			return
		}
		if _, err := r.peer.Request(ctx, wire.MethodUnsubscribe, rawjson.SetText(nil, "uri", uri), nil); err != nil {
			r.hub.log.DebugContext(ctx, "unsubscribe from resource", "namespace", r.namespace, "uri", uri, "error", err)
		}
	})
}

// listChanged trusts the upstream's notification, so recordList has nothing to record.
func (r *relayBackend) listChanged(context.Context, string) bool { return true }

func (r *relayBackend) recordList(context.Context, string) {}

func (r *relayBackend) forgetLists(func(string) bool) {}

// inputSchema is that of the last known list. Without it the upstream checks the call itself.
func (r *relayBackend) inputSchema(ctx context.Context, name string) json.RawMessage {
	info, _ := r.peer.Find(ctx, name)
	return info.Input
}
