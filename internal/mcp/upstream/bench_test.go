package upstream_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// minDelay answers as cheaply as HTTP allows, so that what is measured is us.
type minDelay struct{ modern bool }

func (f minDelay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(body)
	w.Header().Set("Content-Type", wire.ContentJSON)
	if err != nil || !m.IsRequest() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{"content":[{"type":"text","text":"ok"}]}`
	switch m.Method {
	case wire.MethodDiscover:
		if !f.modern {
			answer := wire.Answer(m.ID, nil, wire.Errorf(wire.CodeMethodNotFound, "no"))
			_, _ = w.Write(answer.Append(nil))
			return
		}
		result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case wire.MethodInitialize:
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}}`
	case wire.MethodToolsList:
		result = `{"tools":[` + good + `]}`
	}
	answer := wire.Answer(m.ID, json.RawMessage(result), nil)
	_, _ = w.Write(answer.Append(nil))
}

func benchmarkCall(b *testing.B, spec upstream.Spec) {
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
	m := upstream.New(upstream.Options{Events: bus})
	b.Cleanup(m.Close)
	spec.Name = "test"
	if err := m.Add(spec); err != nil {
		b.Fatal(err)
	}
	if _, err := sub.Next(b.Context()); err != nil {
		b.Fatal(err)
	}
	call := tool.Call{Ref: ref("good"), Args: json.RawMessage(`{"path":"src/main.go","lines":[1,200]}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Call(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

// What a call costs, the floor of HTTP included: compare with BenchmarkFloor.
func BenchmarkCall(b *testing.B) {
	for name, modern := range map[string]bool{"legacy": false, "modern": true} {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewServer(minDelay{modern})
			b.Cleanup(s.Close)
			benchmarkCall(b, upstream.Spec{URL: s.URL})
		})
	}
	b.Run("memory", func(b *testing.B) { // no transport at all
		f := newFake()
		bus := event.New(event.BusOptions{})
		sub := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
		o := f.options()
		o.Events = bus
		m := upstream.New(o)
		b.Cleanup(m.Close)
		if err := m.Add(upstream.Spec{Name: "test", URL: "fake://here"}); err != nil {
			b.Fatal(err)
		}
		if _, err := sub.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Call(b.Context(), tool.Call{Ref: ref("read")}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The same request without us.
func BenchmarkFloor(b *testing.B) {
	s := httptest.NewServer(minDelay{})
	b.Cleanup(s.Close)
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"good","arguments":{"path":"src/main.go","lines":[1,200]}}}`)
	b.ReportAllocs()
	for b.Loop() {
		response, err := http.Post(s.URL, wire.ContentJSON, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.ReadAll(response.Body)
		response.Body.Close()
	}
}
