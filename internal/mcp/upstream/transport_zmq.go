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
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// zmqTransport connects to a ZeroMQ backend as described in docs/backends.md.
// Backends do not speak MCP: the transport translates, and answers requests that
// they do not have.
type zmqTransport struct {
	*hootclient.Client
	leftOut
	hooks Hooks

	mu         sync.Mutex
	calls      map[hootproto.ID]wire.ID // calls in progress
	broadcasts string                   // endpoint of the broadcasts that it listens to
}

// heartbeatInterval is how long a backend may be silent before it gets a heartbeat.
const heartbeatInterval = 5 * time.Second

// broadcastTimeout bounds the time to connect to the broadcasts.
const broadcastTimeout = time.Second

func isZMQ(transport string) bool { return transport == ZMQ || transport == ZMQIPC }

// dialZMQ connects to the backend of a spec.
func (o *Options) dialZMQ(ctx context.Context, spec Spec, hooks Hooks) (Transport, error) {
	secret, err := o.reveal(spec, spec.Curve.Secret)
	if err != nil {
		return nil, notSent(err)
	}
	curve, err := zmtp.ClientCurve(spec.Curve.Server, secret)
	if err != nil {
		return nil, notSent(err)
	}
	opts := hootclient.Options{
		MaxBody: o.MaxMessage, Control: o.DialControl, Curve: curve,
		OnToolsChanged: hooks.Relist,
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

// Call implements Transport.
func (t *zmqTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	answer, err := translate(ctx, t, out.Message)
	if errors.Is(err, hootclient.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", wire.ErrTooLarge, err)
	}
	return answer, err
}

func (t *zmqTransport) ping(ctx context.Context) error { return t.Heartbeat(ctx) }

// initialize asks for the tools of the backend, and listens to its broadcasts.
func (t *zmqTransport) initialize(ctx context.Context) (json.RawMessage, error) {
	catalog, service, err := t.Ready(ctx)
	if err != nil {
		return nil, err
	}
	t.listenToBroadcasts(ctx, catalog.Broadcasts)
	if service == "" {
		service = "backend"
	}
	return handshake(service, t.Protocol()), nil
}

// listenToBroadcasts listens to the backend's broadcasts, unless it does already.
func (t *zmqTransport) listenToBroadcasts(ctx context.Context, endpoint string) {
	t.mu.Lock()
	changed := endpoint != "" && endpoint != t.broadcasts
	t.broadcasts = endpoint
	t.mu.Unlock()
	if !changed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, broadcastTimeout)
	defer cancel()
	if err := t.Subscribe(ctx, endpoint, t.handleBroadcast); err != nil {
		t.hooks.Garbage(excerpt([]byte(err.Error())))
	}
}

// list asks for the tools.
func (t *zmqTransport) list(ctx context.Context) (json.RawMessage, error) {
	catalog, _, err := t.Ready(ctx)
	if err != nil {
		return nil, err
	}
	t.listenToBroadcasts(ctx, catalog.Broadcasts)
	t.leftOut.set(catalog.Invalid)
	definitions := make([]json.RawMessage, len(catalog.Tools))
	for i, entry := range catalog.Tools {
		definitions[i] = definitionOf(entry)
	}
	return listed(definitions), nil
}

// call calls a tool. Every call has a new request id, so that a late answer is
// never taken for that of another call.
func (t *zmqTransport) call(ctx context.Context, m wire.Message) (json.RawMessage, error) {
	request := hootclient.ToolCall{ID: hootproto.NewID()}
	request.Name, _ = rawjson.GetText(m.Params, "name")
	request.Arguments, _ = rawjson.Get(m.Params, "arguments")
	request.Traceparent, _ = rawjson.GetText(wire.Meta(m.Params), wire.MetaTraceParent)
	t.mu.Lock()
	t.calls[request.ID] = m.ID
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.calls, request.ID)
		t.mu.Unlock()
	}()
	outcome, err := t.Client.Call(ctx, request)
	if errors.Is(err, hootclient.ErrUnreadable) {
		return nil, wire.Errorf(wire.CodeInternal, "%s: %v", request.Name, err)
	}
	if err != nil {
		return nil, unknownOutcome(err)
	}
	return resultOf(outcome), nil
}

// unknownOutcome hides what kind of error ended the connection during a call: the caller
// is told that the call's outcome is unknown, whatever the reason.
func unknownOutcome(err error) error {
	if errors.Is(err, hootclient.ErrLost) && !errors.Is(err, hootclient.ErrNotSent) {
		return textOnly{err}
	}
	return err
}

// Send implements Transport. Backends take no notifications: the client cancels
// their calls itself.
func (t *zmqTransport) Send(context.Context, wire.Message) error { return nil }

// CancelsOnDisconnect reports that a call whose context ends is cancelled.
func (t *zmqTransport) CancelsOnDisconnect() bool { return true }

// SetRevision implements Transport. Backends have only one revision.
func (t *zmqTransport) SetRevision(string) {}

// HealthInterval is how long the backend may be silent before a health check.
func (t *zmqTransport) HealthInterval() time.Duration { return heartbeatInterval }

// AnswersWhileBusy reports whether the backend must answer heartbeats while it works.
// Older ones often have only one thread.
func (t *zmqTransport) AnswersWhileBusy() bool { return t.Protocol() != hootproto.Hoot01 }

var _ Transport = (*zmqTransport)(nil)
