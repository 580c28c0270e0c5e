package upstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestPeerAttributes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		at   endpoint
		want string
	}{
		"process":   {endpoint{Transport: Stdio}, "luanette.upstream=x,network.transport=pipe"},
		"http":      {endpoint{HTTP, "http://h.example:8080/mcp"}, "luanette.upstream=x,network.protocol.name=http,network.transport=tcp,server.address=h.example,server.port=8080"},
		"https":     {endpoint{SSE, "https://h.example/sse"}, "luanette.upstream=x,network.protocol.name=http,network.transport=tcp,server.address=h.example"},
		"zmq":       {endpoint{ZMQ, "zmq+tcp://127.0.0.1:5570"}, "luanette.upstream=x,network.transport=tcp,server.address=127.0.0.1,server.port=5570"},
		"zmq, file": {endpoint{ZMQIPC, "zmq+ipc:///run/x.sock"}, "luanette.upstream=x,network.transport=unix"},
	} {
		set := attribute.NewSet(newPeer("x", tt.at).attributes()...)
		if got := set.Encoded(attribute.DefaultEncoder()); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// The duration of a session says why it ended, unless that was intended.
func TestSessionDurations(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	o := Options{Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("t")}
	s := newSession(newConnection(newShared(o), Spec{Name: "x"}, 1), endpoint{Transport: Stdio})
	s.revision = "2025-11-25"
	ended, end := context.WithCancel(t.Context())
	end()
	s.noteEnd(t.Context(), time.Now(), errIdle)
	s.noteEnd(ended, time.Now(), context.Canceled)
	s.noteEnd(t.Context(), time.Now(), errors.New("broken pipe"))
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	m := all.ScopeMetrics[0].Metrics[0]
	got := map[string]uint64{}
	for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
		failure, _ := p.Attributes.Value("error.type")
		got[failure.AsString()] += p.Count
	}
	if m.Name != "mcp.client.session.duration" || len(got) != 2 || got[""] != 2 || got["internal_error"] != 1 {
		t.Errorf("%s: %v", m.Name, got)
	}
}
