package upstream_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// minimalServer answers as cheaply as net/http allows, so that the benchmark
// measures the client.
type minimalServer struct{ modern bool }

func (f minimalServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(body)
	w.Header().Set("Content-Type", wire.ContentJSON)
	if err != nil || !m.IsRequest() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	_, _ = w.Write(minimalAnswer(m, f.modern))
}

func minimalAnswer(m wire.Message, modern bool) []byte {
	result := `{"content":[{"type":"text","text":"ok"}]}`
	switch m.Method {
	case wire.MethodDiscover:
		if !modern {
			answer := wire.Answer(m.ID, nil, wire.Errorf(wire.CodeMethodNotFound, "no"))
			return answer.Append(nil)
		}
		result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case wire.MethodInitialize:
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"minimal","version":"1"}}`
	case wire.MethodToolsList:
		result = `{"tools":[` + good + `]}`
	}
	answer := wire.Answer(m.ID, json.RawMessage(result), nil)
	return answer.Append(nil)
}

// playMinimal is minimalServer as a process.
func playMinimal() int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		if m, err := wire.Parse(line); err == nil && m.IsRequest() {
			_, _ = os.Stdout.Write(append(minimalAnswer(m, false), '\n'))
		}
	}
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

// The cost of a call includes that of the server: compare with BenchmarkBareHTTP.
func BenchmarkCall(b *testing.B) {
	for name, modern := range map[string]bool{"legacy": false, "modern": true} {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewServer(minimalServer{modern})
			b.Cleanup(s.Close)
			benchmarkCall(b, upstream.Spec{Settings: upstream.Settings{URL: s.URL}})
		})
	}
	b.Run("stdio", func(b *testing.B) {
		benchmarkCall(b, stdioSpec(b, "minimal"))
	})
	b.Run("memory", func(b *testing.B) { // no transport at all
		f := newFake()
		bus := event.New(event.BusOptions{})
		sub := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
		o := f.options()
		o.Events = bus
		m := upstream.New(o)
		b.Cleanup(m.Close)
		if err := m.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{URL: "fake://here"}}); err != nil {
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

// The same request with net/http alone.
func BenchmarkBareHTTP(b *testing.B) {
	s := httptest.NewServer(minimalServer{})
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

// BenchmarkCallOfOnesOwn compares a call over the connection of one principal with a call
// over a shared one, in turn.
func BenchmarkCallOfOnesOwn(b *testing.B) {
	s := httptest.NewServer(minimalServer{})
	b.Cleanup(s.Close)
	m := upstream.New(upstream.Options{})
	b.Cleanup(m.Close)
	ctx := as(b, "ann")
	var took [2]time.Duration
	specs := []upstream.Spec{{Name: "shared", Settings: upstream.Settings{URL: s.URL}}, {Name: "own", Settings: upstream.Settings{URL: s.URL, Login: upstream.LoginEach}}}
	for _, spec := range specs {
		if err := m.Add(spec); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for i := range specs {
			began := time.Now()
			if _, err := m.Call(ctx, tool.Call{Ref: tool.Ref{Space: specs[i].Name, Name: "good"}}); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "own/shared")
}
