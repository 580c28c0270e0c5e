package upstream

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Peer is one upstream seen whole: everything it can do, not only its tools. It
// speaks the legacy words to servers of either era. It stays good when the spec
// changes, and answers that there is no such upstream once it is removed.
type Peer struct {
	manager *Manager
	name    string
}

// Call relays the call of a tool as it came: params are those of the request, of which
// call tells what they say. Its result and errors are as Request's.
func (p *Peer) Call(ctx context.Context, call tool.Call, params json.RawMessage) (json.RawMessage, error) {
	var result json.RawMessage
	err := p.manager.with(p.name, func(c *connection) (err error) {
		result, err = c.callTool(ctx, call.Ref.Name, call.Args, request{
			method: wire.MethodToolsCall, params: params, meta: call.Meta, caller: call.Caller,
		})
		return err
	})
	return result, err
}

// Request relays any other request with raw params and returns the raw result, protocol
// keys taken out of its _meta. An error the server sent is a *wire.Error in the
// chain. caller may be nil.
func (p *Peer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	var result json.RawMessage
	err := p.manager.with(p.name, func(c *connection) (err error) {
		result, err = c.relay(ctx, method, params, caller)
		return err
	})
	return result, err
}

// relay makes a request as it came.
func (c *connection) relay(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	r := &request{method: method, params: params, meta: wire.Meta(params), caller: caller}
	if r.params == nil {
		r.params = json.RawMessage(`{}`)
	}
	switch method {
	case wire.MethodToolsList:
		result, err := c.request(ctx, r, "", true)
		return c.filterTools(result), err
	case wire.MethodSubscribe, wire.MethodUnsubscribe:
		return c.subscribe(ctx, r)
	case wire.MethodSetLevel:
		level, _ := rawjson.GetText(params, "level")
		c.mu.Lock()
		c.logLevel = level
		c.mu.Unlock()
	}
	what, _ := wire.NameOf(method, params)
	return c.request(ctx, r, what, repeatable(method))
}

// repeatable tells whether a request of that method may be made again when its
// outcome is unknown.
func repeatable(method string) bool {
	return strings.HasSuffix(method, "/list") || strings.HasSuffix(method, "/get") || strings.HasSuffix(method, "/read") ||
		method == wire.MethodComplete || method == wire.MethodPing || method == wire.MethodSetLevel
}

// Describe tells what the server said of itself: now, or when it last was there.
func (p *Peer) Describe(ctx context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error) {
	c, err := p.manager.connection(p.name)
	if err != nil {
		return nil, nil, nil, err
	}
	c.mu.Lock()
	known, s := c.cached, c.session
	c.mu.Unlock()
	if s == nil && known.Capabilities == nil {
		if s, err = c.waitForSession(ctx, new(time.Time)); err != nil {
			return nil, nil, nil, err
		}
	}
	if s != nil {
		return s.capabilities, s.serverInfo, s.instructions, nil
	}
	return known.Capabilities, known.ServerInfo, known.Instructions, nil
}

// Watch calls f with every notification of the server that belongs to no call,
// readUntil stop. f must not block. A removed upstream has nothing more to say.
func (p *Peer) Watch(f func(method string, params json.RawMessage)) (stop func()) {
	return p.manager.watch(p.name, f)
}

// filterTools takes out of a raw list what does not exist for us.
func (c *connection) filterTools(result json.RawMessage) json.RawMessage {
	spec := c.currentSpec()
	if result == nil || len(spec.AllowedTools)+len(spec.DisabledTools) == 0 && !spec.ReadOnly {
		return result
	}
	raw, _ := rawjson.Get(result, "tools")
	items, _ := rawjson.Items(raw)
	kept := []byte{'['}
	for _, item := range items {
		name, _ := rawjson.GetText(item, "name")
		hints, _ := parseHints(item, "")
		if !spec.permits(name) || spec.ReadOnly && !hints.ReadOnly {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, item...)
	}
	return rawjson.Set(result, "tools", append(kept, ']'))
}

// subscribe shares one subscription among all who want a resource: the first one
// makes it, the last one ends it.
func (c *connection) subscribe(ctx context.Context, r *request) (json.RawMessage, error) {
	uri, ok := rawjson.GetText(r.params, "uri")
	if !ok {
		return nil, fault.New(fault.InvalidParams, "%s without a uri", r.method)
	}
	c.mu.Lock()
	before := c.subscribers[uri]
	if r.method == wire.MethodSubscribe {
		c.subscribers[uri]++
	} else if before > 0 {
		if c.subscribers[uri]--; c.subscribers[uri] == 0 {
			delete(c.subscribers, uri)
		}
	}
	shared := before > 0 && c.subscribers[uri] > 0
	c.mu.Unlock()
	if shared {
		return json.RawMessage(`{}`), nil
	}
	return c.request(ctx, r, "", true)
}

func followRequest(method, uri string, timeout time.Duration) *request {
	return &request{method: method, params: rawjson.SetText(nil, "uri", uri), timeout: timeout}
}

func levelRequest(level string, timeout time.Duration) *request {
	return &request{method: wire.MethodSetLevel, params: rawjson.SetText(nil, "level", level), timeout: timeout}
}

// perform is do for requests in the legacy words: what a modern server says
// otherwise is translated.
func (s *session) perform(ctx context.Context, r *request) (json.RawMessage, error) {
	if s.era != wire.Modern {
		return s.do(ctx, r)
	}
	switch r.method {
	case wire.MethodPing:
		return json.RawMessage(`{}`), s.checkHealth(ctx, r.timeout)
	case wire.MethodSetLevel:
		level, _ := rawjson.GetText(r.params, "level")
		s.logLevelSet.Store(&level)
		return json.RawMessage(`{}`), nil
	case wire.MethodSubscribe, wire.MethodUnsubscribe:
		uri, _ := rawjson.GetText(r.params, "uri")
		s.setResourceSubscription(uri, r.method == wire.MethodSubscribe)
		return json.RawMessage(`{}`), nil
	}
	return s.do(ctx, r)
}
