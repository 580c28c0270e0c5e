package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

func TestWarningsAreRare(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := clock.NewVirtual(time.Unix(0, 0))
	c := &exportWarnings{log: slog.New(slog.NewTextHandler(&out, nil)), clock: v}
	for range 5 * 60 { // one failure a second for five minutes
		c.warn("traces", errors.New("connection refused"))
		v.Advance(time.Second)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Errorf("%d warnings in five minutes, want 5", len(lines))
	}
	if !strings.Contains(lines[0], "unmentioned=0") || !strings.Contains(lines[1], "unmentioned=59") {
		t.Errorf("complaints:\n%s", out.String())
	}
}

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	tests := []struct{ endpoint, url, protocol string }{
		{"http://collector:4318", "http://collector:4318", "http/protobuf"},
		{"https://collector/otlp", "https://collector/otlp", "http/protobuf"},
		{"http://collector:4317", "http://collector:4317", "grpc"},
		{"https://collector:4317", "https://collector:4317", "grpc"},
		{"grpc://collector", "http://collector:4317", "grpc"},
		{"127.0.0.1:35991", "http://127.0.0.1:35991", "grpc"},
		{"[::1]:4317", "http://[::1]:4317", "grpc"},
		{"collector", "http://collector:4317", "grpc"},
	}
	for _, tt := range tests {
		t.Run(tt.endpoint, func(t *testing.T) {
			t.Parallel()
			u, protocol, err := parseEndpoint(tt.endpoint)
			if err != nil || u.String() != tt.url || protocol != tt.protocol {
				t.Errorf("got %v, %q, %v; want %s, %s", u, protocol, err, tt.url, tt.protocol)
			}
		})
	}
}
