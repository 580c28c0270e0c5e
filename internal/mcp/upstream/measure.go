package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/observe/telemetry/duration"
)

// meters are what is measured of upstreams, by the semantic conventions for MCP.
type meters struct {
	operation *duration.Histogram[operationKind]
	session   *duration.Histogram[sessionKind]
}

func newMeters(m metric.Meter) *meters {
	return &meters{
		operation: duration.New[operationKind](m, duration.Options{
			Name: "mcp.client.operation.duration", Description: "How long a request took, from its sending to its answer", Boundaries: duration.MCP,
		}),
		session: duration.New[sessionKind](m, duration.Options{
			Name: "mcp.client.session.duration", Description: "How long a session lasted", Boundaries: duration.MCP,
		}),
	}
}

// peer is the server at the other end of a session.
type peer struct{ upstream, revision, network, protocol, address, port string }

// newPeer describes the server of an upstream that is reached at an endpoint.
func newPeer(upstream string, e endpoint) peer {
	p := peer{upstream: upstream, network: "tcp"}
	switch {
	case e.Transport == Stdio:
		p.network = "pipe"
	case e.Transport == ZMQIPC:
		p.network = "unix"
	case e.usesHeaders(), e.Transport == SSE:
		p.protocol = "http"
	}
	if u, err := url.Parse(e.URL); err == nil && p.network == "tcp" {
		p.address, p.port = u.Hostname(), u.Port()
	}
	return p
}

func (p peer) attributes() []attribute.KeyValue {
	list := duration.Texts("luanette.upstream", p.upstream, "mcp.protocol.version", p.revision,
		"network.transport", p.network, "network.protocol.name", p.protocol, "server.address", p.address)
	if port, err := strconv.Atoi(p.port); err == nil {
		list = append(list, attribute.Int("server.port", port))
	}
	return list
}

// operationKind is what the durations of requests are told apart by.
type operationKind struct {
	peer                    peer
	method, about           string
	failure, responseStatus string
}

// Attributes are those of the semantic conventions, and the upstream.
func (k operationKind) Attributes() []attribute.KeyValue {
	list := append(k.peer.attributes(), duration.Texts("mcp.method.name", k.method, "error.type", k.failure, "rpc.response.status_code", k.responseStatus)...)
	if k.about == "" {
		return list
	}
	return appendSubject(list, k.method, k.about)
}

// sessionKind is what the durations of sessions are told apart by.
type sessionKind struct {
	peer    peer
	failure string
}

// Attributes are those of the semantic conventions, and the upstream.
func (k sessionKind) Attributes() []attribute.KeyValue {
	return append(k.peer.attributes(), duration.Texts("error.type", k.failure)...)
}

// noteOutcome records how long a request took, and whether its tool failed.
func (s *session) noteOutcome(ctx context.Context, r *outcall, began time.Time, result json.RawMessage, err error) {
	r.failed = err == nil && r.method == wire.MethodToolsCall && rawjson.GetBool(result, "isError")
	if !s.connection.meters.operation.Enabled(ctx) {
		return
	}
	k := operationKind{peer: s.peer, method: r.method}
	if !r.handshake { // which agrees on the revision
		k.peer.revision = s.revision
	}
	if r.method == wire.MethodToolsCall && r.label != nil && r.label.listed {
		k.about = r.about
	}
	switch {
	case err != nil:
		if k.failure = errorType(err); isAnswer(err) {
			k.responseStatus = k.failure
		}
	case r.failed:
		k.failure = toolFailed
	}
	s.connection.meters.operation.Record(ctx, k, time.Since(began))
}

// spanAttributes describe the server in spans of requests. The handshake is over.
func (s *session) spanAttributes() []attribute.KeyValue {
	s.describeOnce.Do(func() {
		p := s.peer
		p.revision = s.revision
		s.described = p.attributes()
	})
	return s.described
}

// noteEnd records how long the session was used, and why it ended if that was not
// intended.
func (s *session) noteEnd(ctx context.Context, began time.Time, reason error) {
	k := sessionKind{peer: s.peer}
	if k.peer.revision = s.revision; ctx.Err() == nil && !errors.Is(reason, errIdle) {
		k.failure = errorType(reason)
	}
	s.connection.meters.session.Record(ctx, k, time.Since(began))
}

// measureStates adds an instrument that has one value per upstream: 1, with its state.
func (m *Manager) measureStates() metric.Registration {
	meter := m.opts.Meter
	if meter == nil {
		meter = noop.Meter{}
	}
	states, err := meter.Int64ObservableGauge("luanette.upstream.status", metric.WithDescription("1 for each upstream, with its state"))
	if err != nil {
		return noop.Registration{}
	}
	registered, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, st := range m.List() {
			o.ObserveInt64(states, 1, metric.WithAttributes(attribute.String("luanette.upstream", st.Name), attribute.String("state", string(st.State))))
		}
		return nil
	}, states)
	if err != nil {
		return noop.Registration{}
	}
	return registered
}
