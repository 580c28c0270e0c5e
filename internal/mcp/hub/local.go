package hub

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/skills"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// localBackend serves /mcp: the program's own tools, resources and prompts.
type localBackend struct {
	hub  *Hub
	self serverDescription

	mu     sync.Mutex
	tools  map[display]*toolList
	prints map[listKey]fingerprint // of the lists, to notice changes
}

func newLocalBackend(h *Hub) *localBackend {
	return &localBackend{hub: h, self: describeSelf(h.opts), tools: map[display]*toolList{}, prints: map[listKey]fingerprint{}}
}

// describeSelf is the description of the hub.
func describeSelf(o Options) serverDescription {
	info := map[string]string{"name": o.Name, "version": o.Version}
	if o.Title != "" {
		info["title"] = o.Title
	}
	changing := o.Changes != nil
	caps := map[string]any{
		"tools":   map[string]any{"listChanged": changing},
		"logging": map[string]any{},
	}
	extensions := map[string]any{}
	if o.Offers != nil {
		extensions[wire.ExtensionSkills] = skills.Capability
		caps["resources"] = map[string]any{"listChanged": changing, "subscribe": changing}
		caps["prompts"] = map[string]any{"listChanged": changing}
		caps["completions"] = map[string]any{}
	}
	if o.Tasks != nil || o.RelayedTasks != nil {
		extensions[wire.ExtensionTasks] = tasksCapability
	}
	if o.Upstreams != nil {
		extensions[wire.ExtensionApps] = struct{}{}
	}
	if len(extensions) > 0 {
		caps["extensions"] = extensions
	}
	rawInfo, _ := json.Marshal(info) // maps of plain values always encode
	rawCaps, _ := json.Marshal(caps)
	return serverDescription{capabilities: rawCaps, info: rawInfo}
}

func (o *localBackend) describe(ctx context.Context) (serverDescription, error) {
	self := o.self
	if o.hub.opts.Sets != nil {
		self.instructions = o.hub.opts.Sets.Instructions(ctx)
	}
	return self, nil
}

func (o *localBackend) setLevel(context.Context, string) error { return nil }

func (o *localBackend) subscribe(ctx context.Context, uri string) (release func(), err error) {
	if o.hub.opts.Offers == nil || o.hub.opts.Changes == nil {
		return nil, errNoMethod(wire.MethodSubscribe)
	}
	return o.hub.opts.Offers.Subscribe(ctx, uri)
}

func (o *localBackend) serve(ctx context.Context, req *request) (json.RawMessage, error) {
	switch req.method {
	case wire.MethodToolsCall:
		return o.call(ctx, req)
	case wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodSkillsList:
		return o.page(ctx, req)
	case wire.MethodResourcesRead, wire.MethodPromptsGet, wire.MethodComplete, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		if o.hub.opts.Offers != nil {
			return o.request(ctx, req)
		}
	case wire.MethodTasksGet, wire.MethodTasksUpdate, wire.MethodTasksCancel, wire.MethodTasksList, wire.MethodTasksResult:
		return req.serveTasks(ctx)
	}
	return nil, errNoMethod(req.method)
}

// callKeys are the members of a call's params besides its name.
var callKeys = []string{"arguments", "_meta", "task"}

// call runs a tool. Arguments and result are passed as they are.
func (o *localBackend) call(ctx context.Context, req *request) (json.RawMessage, error) {
	var fields [3]json.RawMessage
	rawjson.Pick(req.params, callKeys, fields[:])
	args, err := arguments(req.name, fields[0])
	if err != nil {
		return nil, err
	}
	call := tool.Call{
		Ref:    tool.Ref{Name: req.name},
		Args:   args,
		Meta:   o.hub.callerMeta(fields[1]),
		Caller: req.caller(),
		Task:   req.taskRequest(fields[2]),
	}
	result, err := req.withLogin(ctx, func() (tool.Result, error) { return o.hub.opts.Tools.Call(ctx, call) })
	if err != nil {
		return toolFailure(ctx, req.name, err)
	}
	if result.Task != "" {
		return req.receipt(ctx, result)
	}
	if !rawjson.IsObject(result.Raw) {
		return nil, fault.New(fault.Internal, "tool %s returned no result", req.name)
	}
	return result.Raw, nil
}

func arguments(name string, raw json.RawMessage) (json.RawMessage, error) {
	switch {
	case name == "":
		return nil, wire.Errorf(wire.CodeInvalidParams, "params need name, a string")
	case rawjson.IsNull(raw):
		return nil, nil
	case !rawjson.IsObject(raw):
		return nil, wire.Errorf(wire.CodeInvalidParams, "arguments must be an object")
	}
	return raw, nil
}

// request makes a request about resources and prompts.
func (o *localBackend) request(ctx context.Context, req *request) (json.RawMessage, error) {
	switch req.method {
	case wire.MethodResourcesRead, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		if uriOf(req.params) == "" {
			return nil, wire.Errorf(wire.CodeInvalidParams, "params need uri, a string")
		}
	case wire.MethodPromptsGet:
		raw, _ := rawjson.Get(req.params, "arguments")
		if _, err := arguments(req.name, raw); err != nil {
			return nil, err
		}
	}
	var result json.RawMessage
	_, err := req.withLogin(ctx, func() (_ tool.Result, err error) {
		result, err = o.hub.opts.Offers.Request(ctx, req.method, o.hub.stripParams(req.params), req.caller())
		return tool.Result{}, err
	})
	if err == nil && !rawjson.IsObject(result) {
		err = fault.New(fault.Upstream, "%s was answered with no object", req.method)
	}
	return result, err
}

// hopKey tells whether a key of a request's _meta belongs to this hop: the protocol's own
// keys, and the trace context if the hub reads it, which is then in the call's context.
func (h *Hub) hopKey(key []byte) bool {
	switch string(key) {
	case wire.MetaProgressToken:
		return true
	case wire.MetaTraceParent, wire.MetaTraceState, wire.MetaBaggage:
		return h.opts.Propagator != nil
	}
	return wire.IsProtocol(key)
}

// callerMeta is a request's _meta without the keys of this hop, or nil.
func (h *Hub) callerMeta(meta json.RawMessage) json.RawMessage {
	if !rawjson.IsObject(meta) {
		return nil
	}
	rest := rawjson.DeleteFunc(meta, h.hopKey)
	if string(rest) == "{}" {
		return nil
	}
	return rest
}

// stripParams returns a request's params without what belongs to this hop.
func (h *Hub) stripParams(params json.RawMessage) json.RawMessage {
	params = withoutAnswers(params)
	if meta, ok := rawjson.Get(params, "_meta"); ok {
		params = wire.SetMeta(params, h.callerMeta(meta))
	}
	return params
}

// withoutAnswers returns params without the input that resumes a request.
func withoutAnswers(params json.RawMessage) json.RawMessage {
	if rawjson.Lacks(params, "inputResponses") && rawjson.Lacks(params, "requestState") {
		return params
	}
	return rawjson.DeleteFunc(params, func(key []byte) bool { return string(key) == "inputResponses" || string(key) == "requestState" })
}

// menuOf returns the list of tools that a client asks for with the URL it uses. Each
// upstream has one list.
func (e *endpoint) menuOf(r *http.Request) string {
	if r.URL.RawQuery == "" || e != e.hub.local {
		return ""
	}
	return r.URL.Query().Get("menu")
}

// menuOfClient returns the menu of a client that did not ask for one: another hub offers
// what is listed to its own clients, so it gets more.
func (e *endpoint) menuOfClient(clientInfo json.RawMessage) string {
	if name, _ := rawjson.GetText(clientInfo, "name"); e != e.hub.local || name != e.hub.opts.Name {
		return ""
	}
	return e.hub.opts.HubMenu
}

// checkMenu refuses an unknown menu.
func (e *endpoint) checkMenu(r *http.Request) error {
	name, known := e.menuOf(r), e.hub.opts.Menus
	if name == "" || slices.Contains(known, name) {
		return nil
	}
	if len(known) == 0 {
		return wire.Errorf(wire.CodeInvalidRequest, "unknown menu %q: this server has one list of tools", name)
	}
	return wire.Errorf(wire.CodeInvalidRequest, "unknown menu %q: use %s or %s", name, strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}

// meetClient notes the client of a session when it initializes, and sets its menu, before
// anything else uses them.
func (s *session) meetClient(m wire.Message) {
	if m.Method != wire.MethodInitialize {
		return
	}
	info, _ := rawjson.Get(m.Params, "clientInfo")
	s.ep.hub.clients.add(info, time.Now())
	s.agent = agentOf(info)
	if s.menu == "" {
		s.menu = s.ep.menuOfClient(info)
	}
}

// meetClient notes the client of a request of the modern era, and sets its menu; asked is
// the one in the URL. Calls are not looked at: they are many, and a client lists first.
func (req *request) meetClient(asked string) {
	req.menu = asked
	if req.method == wire.MethodToolsCall {
		return
	}
	info, _ := rawjson.Get(req.meta, wire.MetaClientInfo)
	req.ep.hub.clients.add(info, time.Now())
	if asked == "" {
		req.menu = req.ep.menuOfClient(info)
	}
}
