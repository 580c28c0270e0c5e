package hub

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// backend is what an endpoint serves.
type backend interface {
	// describe returns what initialize and server/discover answer.
	describe(ctx context.Context) (serverDescription, error)
	// serve answers a request about tools, resources, prompts or completion.
	serve(ctx context.Context, req *request) (json.RawMessage, error)
	// inputSchema is the schema of a tool's arguments, which says what modern clients repeat in
	// headers; nil: it is not known.
	inputSchema(ctx context.Context, tool string) json.RawMessage
	// subscribe requests notifications of updates of a resource, until release is called.
	subscribe(ctx context.Context, uri string) (release func(), err error)
	// recordList records the state of a list for the caller, which the notification of its
	// changes names; listChanged tells whether it is different now, and records the new
	// state. forgetLists forgets the states for those who are gone.
	recordList(ctx context.Context, method string)
	listChanged(ctx context.Context, method string) bool
	forgetLists(gone func(viewer string) bool)
	// setLevel requests log messages of a level and above.
	setLevel(ctx context.Context, name string) error
}

// serverDescription is how a server describes itself.
type serverDescription struct {
	capabilities json.RawMessage
	info         json.RawMessage // name, version, …
	instructions string
}

// endpoint is one URL that clients use: /mcp, or that of an upstream.
type endpoint struct {
	hub          *Hub
	name         string // the upstream's namespace, or empty
	owner        string // whose connection to the upstream it uses; empty if all share one
	backend      backend
	sessions     *sessions
	tasks        taskSource
	stop         func()       // stops watching for changes; may be nil
	backendLevel atomic.Int32 // the level that the backend was set to

	mu        sync.Mutex
	info      json.RawMessage // the server info that describe returned last
	listeners map[*listener]struct{}
	changes   map[string]*time.Timer // list changes that are being debounced
	closed    bool
	gone      chan struct{} // closed by close
}

func newEndpoint(h *Hub, name string, b backend) *endpoint {
	e := &endpoint{
		hub:       h,
		name:      name,
		backend:   b,
		sessions:  &sessions{max: h.opts.Limits.Sessions, byID: map[string]*session{}},
		tasks:     newTaskSource(h.opts, name),
		listeners: map[*listener]struct{}{},
		changes:   map[string]*time.Timer{},
		gone:      make(chan struct{}),
	}
	e.backendLevel.Store(int32(levelNone))
	return e
}

// close ends all sessions and streams of the endpoint. It is called when no request runs there, or
// when the upstream was removed.
func (e *endpoint) close(ctx context.Context) {
	e.mu.Lock()
	if !e.closed {
		close(e.gone)
	}
	e.closed = true
	for _, timer := range e.changes {
		timer.Stop()
	}
	e.mu.Unlock()
	if e.stop != nil {
		e.stop()
	}
	for _, s := range e.sessions.list() {
		e.sessions.remove(ctx, s)
	}
}

var legacyMethods = []string{
	wire.MethodInitialize, wire.MethodPing, wire.MethodSetLevel, wire.MethodSubscribe, wire.MethodUnsubscribe,
}

var modernMethods = []string{wire.MethodDiscover, wire.MethodListen}

func errNoMethod(method string) error {
	return wire.Errorf(wire.CodeMethodNotFound, "method not found: %s", method)
}

// answer computes the result of a request of either era.
func (e *endpoint) answer(ctx context.Context, req *request) (json.RawMessage, error) {
	if req.era == wire.Modern && slices.Contains(legacyMethods, req.method) ||
		req.era == wire.Legacy && slices.Contains(modernMethods, req.method) {
		return nil, errNoMethod(req.method)
	}
	switch req.method {
	case wire.MethodPing:
		return json.RawMessage("{}"), nil
	case wire.MethodInitialize:
		return e.initialize(ctx, req)
	case wire.MethodDiscover:
		return e.discover(ctx)
	case wire.MethodListen:
		return e.listen(ctx, req)
	case wire.MethodSetLevel:
		return e.setLevel(ctx, req)
	case wire.MethodSubscribe:
		return e.subscribe(ctx, req)
	case wire.MethodUnsubscribe:
		if !req.session.unsubscribe(uriOf(req.params)) {
			e.forward(req.session, wire.Notification(wire.MethodUnsubscribe, req.params)) //nolint:contextcheck // in the background
		}
		return json.RawMessage("{}"), nil
	}
	if req.era == wire.Modern {
		e.prepareModern(ctx, req)
	}
	return e.backend.serve(ctx, req)
}

// prepareModern prepares what the answers of the modern era need.
func (e *endpoint) prepareModern(ctx context.Context, req *request) {
	if e.serverInfo() == nil {
		// Every modern result names the server. If the name is not known now, the
		// next request asks again.
		_, _ = e.describe(ctx)
	}
	if resp := req.current(); resp != nil && resp.level != levelNone {
		// Without log messages the request can still be served.
		_ = e.lowerLevel(ctx, resp.level)
	}
}

// describe asks the backend and stores the server info for later results.
func (e *endpoint) describe(ctx context.Context) (serverDescription, error) {
	a, err := e.backend.describe(ctx)
	if err != nil {
		return a, err
	}
	e.mu.Lock()
	e.info = a.info
	e.mu.Unlock()
	return a, nil
}

func (e *endpoint) serverInfo() json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

func (e *endpoint) initialize(ctx context.Context, req *request) (json.RawMessage, error) {
	var fields [2]json.RawMessage
	rawjson.Pick(req.params, []string{"protocolVersion", "capabilities"}, fields[:])
	requested, ok := rawjson.Text(fields[0])
	if !ok {
		return nil, wire.Errorf(wire.CodeInvalidParams, "initialize needs protocolVersion")
	}
	a, err := e.describe(ctx)
	if err != nil {
		return nil, err
	}
	version := wire.Negotiate(requested)
	caps := fields[1]
	if !rawjson.IsObject(caps) {
		caps = json.RawMessage("{}")
	}
	req.session.initialize(version, caps)
	for _, kind := range listChanges {
		e.backend.recordList(req.session.display().in(ctx), kind) // from now on the client is notified of changes
	}
	if version >= wire.Revision2511 && offersTasks(a.capabilities) {
		a.capabilities = rawjson.Set(a.capabilities, "tasks", json.RawMessage(legacyTasks))
	}
	out := rawjson.AppendText([]byte(`{"protocolVersion":`), version)
	out = append(append(out, `,"capabilities":`...), a.capabilities...)
	out = append(append(out, `,"serverInfo":`...), a.info...)
	if a.instructions != "" {
		out = rawjson.AppendText(append(out, `,"instructions":`...), a.instructions)
	}
	return append(out, '}'), nil
}

func (e *endpoint) discover(ctx context.Context) (json.RawMessage, error) {
	a, err := e.describe(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := json.Marshal(wire.Revisions())
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "write revisions")
	}
	out := append([]byte(`{"supportedVersions":`), versions...)
	out = append(append(out, `,"capabilities":`...), a.capabilities...)
	if a.instructions != "" {
		out = rawjson.AppendText(append(out, `,"instructions":`...), a.instructions)
	}
	return append(out, '}'), nil
}

func (e *endpoint) setLevel(ctx context.Context, req *request) (json.RawMessage, error) {
	name, _ := rawjson.GetText(req.params, "level")
	want, ok := parseLevel(name)
	if !ok {
		return nil, wire.Errorf(wire.CodeInvalidParams, "unknown log level %q", name)
	}
	if err := e.lowerLevel(ctx, want); err != nil {
		return nil, err
	}
	req.session.level.Store(int32(want))
	e.saveSession(ctx, req.session)
	return json.RawMessage("{}"), nil
}

// lowerLevel makes sure that the backend sends log messages of a level. The level of the
// backend only ever goes down, since messages are filtered for each session.
func (e *endpoint) lowerLevel(ctx context.Context, want level) error {
	if want >= level(e.backendLevel.Load()) {
		return nil
	}
	if err := e.backend.setLevel(ctx, levels[want]); err != nil {
		return err
	}
	for current := e.backendLevel.Load(); int32(want) < current && !e.backendLevel.CompareAndSwap(current, int32(want)); {
		current = e.backendLevel.Load()
	}
	return nil
}

func (e *endpoint) subscribe(ctx context.Context, req *request) (json.RawMessage, error) {
	uri := uriOf(req.params)
	if uri == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "resources/subscribe needs uri")
	}
	release, err := e.backend.subscribe(ctx, uri)
	if err != nil {
		return nil, err
	}
	if !req.session.subscribe(uri, release) {
		release()
	}
	return json.RawMessage("{}"), nil
}

func uriOf(params json.RawMessage) string {
	uri, _ := rawjson.GetText(params, "uri")
	return uri
}
