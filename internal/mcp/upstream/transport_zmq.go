package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// zmqTransport reaches a backend by docs/backends.md. Backends know nothing of
// MCP, so the link stands in for the server they are to the rest of us.
type zmqTransport struct {
	*hootclient.Client
	hooks Hooks

	mu         sync.Mutex
	calls      map[hootproto.ID]wire.ID // under way
	broadcasts string                   // where broadcasts are heard
}

// heartbeatInterval is how long a backend may be silent until it gets a heartbeat.
const heartbeatInterval = 5 * time.Second

// broadcastTimeout is how long connecting waits for the broadcasts.
const broadcastTimeout = time.Second

func isZMQ(transport string) bool { return transport == ZMQ || transport == ZMQIPC }

// dialZMQ connects to the backend of a spec.
func (o *Options) dialZMQ(ctx context.Context, spec Spec, hooks Hooks) (Transport, error) {
	opts := hootclient.Options{
		MaxBody: o.MaxMessage, Control: o.DialControl,
		OnToolsChanged: hooks.Relist, // so its tools are listed again
		OnInvalid:      func(err error) { hooks.Garbage(excerpt([]byte(err.Error()))) },
	}
	if spec.Trusted {
		opts.Control = nil
	} else if o.AllowURL != nil {
		u, err := url.Parse(spec.URL)
		if err == nil {
			err = o.AllowURL(u)
		}
		if err != nil {
			return nil, notSent(fmt.Errorf("connect to %s: %w", spec.Target(), err))
		}
	}
	client, err := hootclient.Dial(ctx, strings.TrimPrefix(spec.URL, "zmq+"), opts)
	if err != nil {
		return nil, err
	}
	return &zmqTransport{Client: client, hooks: hooks, calls: map[hootproto.ID]wire.ID{}}, nil
}

// Call implements Link: what a server would answer.
func (l *zmqTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	m := out.Message
	var result json.RawMessage
	var err error
	switch m.Method {
	case wire.MethodInitialize:
		result, err = l.initialize(ctx)
	case wire.MethodPing:
		result, err = json.RawMessage(`{}`), l.Heartbeat(ctx)
	case wire.MethodToolsList:
		result, err = l.list(ctx)
	case wire.MethodToolsCall:
		result, err = l.call(ctx, m)
	default:
		err = wire.Errorf(wire.CodeMethodNotFound, "a backend has no %s", m.Method)
	}
	var refused *wire.Error
	switch {
	case errors.As(err, &refused), err == nil:
		return wire.Answer(m.ID, result, err), nil
	case errors.Is(err, hootclient.ErrTooLarge):
		err = fmt.Errorf("%w: %w", wire.ErrTooLarge, err)
	}
	return wire.Message{}, err
}

// handshake asks what the backend can do, and listens to its broadcasts.
func (l *zmqTransport) initialize(ctx context.Context) (json.RawMessage, error) {
	catalog, service, err := l.Ready(ctx)
	if err != nil {
		return nil, err
	}
	l.listenToBroadcasts(ctx, catalog.Broadcasts)
	if service == "" {
		service = "backend"
	}
	greeting := rawjson.SetText(nil, "protocolVersion", wire.NewestLegacy)
	greeting = rawjson.Set(greeting, "capabilities", json.RawMessage(`{"tools":{"listChanged":true}}`))
	return rawjson.Set(greeting, "serverInfo", rawjson.SetText(rawjson.SetText(nil, "name", service), "version", hootproto.Magic)), nil
}

// listenToBroadcasts listens to the backend's broadcasts, unless it does already.
func (l *zmqTransport) listenToBroadcasts(ctx context.Context, endpoint string) {
	l.mu.Lock()
	news := endpoint != "" && endpoint != l.broadcasts
	l.broadcasts = endpoint
	l.mu.Unlock()
	if !news {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, broadcastTimeout)
	defer cancel()
	if err := l.Subscribe(ctx, endpoint, l.handleBroadcast); err != nil {
		l.hooks.Garbage(excerpt([]byte(err.Error())))
	}
}

// visibleTools asks for the tools.
func (l *zmqTransport) list(ctx context.Context) (json.RawMessage, error) {
	catalog, _, err := l.Ready(ctx)
	if err != nil {
		return nil, err
	}
	l.listenToBroadcasts(ctx, catalog.Broadcasts)
	tools := []byte{'['}
	for i, t := range catalog.Tools {
		if i > 0 {
			tools = append(tools, ',')
		}
		tools = append(tools, definitionOf(t)...)
	}
	return rawjson.Set(nil, "tools", append(tools, ']')), nil
}

// call calls a tool. The request's own id is new with every call, so that a late
// answerQuestion to one is never taken for another's.
func (l *zmqTransport) call(ctx context.Context, m wire.Message) (json.RawMessage, error) {
	request := hootclient.ToolCall{ID: hootproto.NewID()}
	request.Name, _ = rawjson.GetText(m.Params, "name")
	request.Arguments, _ = rawjson.Get(m.Params, "arguments")
	request.Traceparent, _ = rawjson.GetText(wire.Meta(m.Params), wire.MetaTraceParent)
	l.mu.Lock()
	l.calls[request.ID] = m.ID
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.calls, request.ID)
		l.mu.Unlock()
	}()
	outcome, err := l.Client.Call(ctx, request)
	if errors.Is(err, hootclient.ErrUnreadable) {
		return nil, wire.Errorf(wire.CodeInternal, "%s: %v", request.Name, err)
	}
	if err != nil {
		return nil, err
	}
	return resultOf(outcome), nil
}

// Send implements Link. A backend needs no notification: it hears at once when a
// call is called off.
func (l *zmqTransport) Send(context.Context, wire.Message) error { return nil }

// CancelsOnDisconnect tells that giving up a call tells the backend so.
func (l *zmqTransport) CancelsOnDisconnect() bool { return true }

// SetRevision implements Link. Backends have one revision.
func (l *zmqTransport) SetRevision(string) {}

// HealthInterval is how long the backend may be silent.
func (l *zmqTransport) HealthInterval() time.Duration { return heartbeatInterval }

var _ Transport = (*zmqTransport)(nil)
