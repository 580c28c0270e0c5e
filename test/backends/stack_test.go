package backends_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

// stack is everything between an MCP client and a backend: a client over HTTP, the
// hub, the catalog, the connection, ZeroMQ.
type stack struct {
	*testing.T
	bus    *event.Bus // of the hub
	client *upstream.Peer
}

// traced is how a stack records and passes on traces; both may be nil.
type traced struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// newStack connects an MCP client, through a hub, to the backend at address.
func newStack(t *testing.T, address string, how traced) *stack {
	t.Helper()
	bus := event.New(event.BusOptions{Keep: 4096})
	front := upstream.New(upstream.Options{Events: bus, Tracer: how.tracer, Propagator: how.propagator})
	t.Cleanup(front.Close)
	await(t, front, bus, upstream.Spec{Name: "back", Settings: upstream.Settings{URL: "zmq+" + address, Wait: duration.Duration(clocktest.Timeout)}})
	c := catalog.New(catalog.Options{Bus: bus, Tracer: how.tracer})
	c.Add(front)
	c.Expose("back", catalog.Exposure{All: true, Prefixes: []string{""}})
	c.Refresh(t.Context())
	mcp := hub.New(hub.Options{Name: "front", Version: "test", Tools: c.Exposed(), Tracer: how.tracer, Propagator: how.propagator})
	server := httptest.NewServer(mcp.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = mcp.Close(context.WithoutCancel(t.Context())) })
	clientBus := event.New(event.BusOptions{})
	clients := upstream.New(upstream.Options{Events: clientBus, Tracer: how.tracer, Propagator: how.propagator})
	t.Cleanup(clients.Close)
	await(t, clients, clientBus, upstream.Spec{Name: "hub", Settings: upstream.Settings{URL: server.URL + "/mcp", Wait: duration.Duration(clocktest.Timeout)}})
	peer, _ := clients.Peer("hub")
	return &stack{t, bus, peer}
}

// await adds an upstream and waits until it is connected.
func await(t *testing.T, m *upstream.Manager, bus *event.Bus, spec upstream.Spec) {
	t.Helper()
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
	defer sub.Close()
	if err := m.Add(spec); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	if _, err := sub.Next(ctx); err != nil {
		status, _ := m.Status(spec.Name)
		t.Fatalf("not connected: %+v", status)
	}
}

// serveSource serves a source for the length of the test.
func serveSource(t *testing.T, opts hootserver.Options) *hootserver.Server {
	t.Helper()
	opts.Name, opts.Listen, opts.Broadcast = "source", "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	b, err := hootserver.Listen(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return b
}

// call calls a tool as an MCP client does.
func (s *stack) call(name string, args json.RawMessage, caller *tool.Caller) (tool.View, error) {
	params := rawjson.Set(rawjson.SetText(nil, "name", name), "arguments", args)
	raw, err := s.client.Request(s.Context(), wire.MethodToolsCall, params, caller)
	if err != nil {
		return tool.View{}, err
	}
	return tool.Result{Raw: raw}.View()
}
