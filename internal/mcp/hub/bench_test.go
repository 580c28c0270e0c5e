package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// The benchmarks measure what the hub itself costs per call: they call its handler without
// net/http. BenchmarkLoopback adds net/http and the client over a real connection.

const benchResult = `{"content":[{"type":"text","text":"hello"}],"structuredContent":{"message":"hello","n":9007199254740993}}`

// echoSource has one tool that answers the same bytes to everything.
type echoSource struct{ infos []tool.Info }

func newEchoSource() *echoSource {
	return &echoSource{infos: []tool.Info{{
		Ref: tool.Ref{Name: "echo"}, Description: "Says the same", Input: json.RawMessage(`{"type":"object"}`),
	}}}
}

func (s *echoSource) Tools(context.Context) ([]tool.Info, error) { return s.infos, nil }

func (s *echoSource) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Raw: json.RawMessage(benchResult)}, nil
}

// echoPeer is an upstream that answers the same bytes to every call.
type echoPeer struct{}

func (echoPeer) Call(context.Context, tool.Call, json.RawMessage) (tool.Result, error) {
	return tool.Result{Raw: json.RawMessage(benchResult)}, nil
}

func (echoPeer) Request(context.Context, string, json.RawMessage, *tool.Caller) (json.RawMessage, error) {
	return json.RawMessage(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`), nil
}

func (echoPeer) Describe(context.Context) (capabilities, info, instructions json.RawMessage, err error) {
	return json.RawMessage(`{"tools":{}}`), json.RawMessage(`{"name":"echo","version":"1"}`), nil, nil
}

func (echoPeer) Listed(context.Context, string) []json.RawMessage { return nil }

func (echoPeer) Find(context.Context, string) (tool.Info, bool) { return tool.Info{}, false }

func (echoPeer) Watch(func(string, json.RawMessage)) func() { return func() {} }

// upstreams are peers by namespace.
type upstreams map[string]hub.Peer

func (u upstreams) Peer(_ context.Context, namespace string) (hub.Peer, bool) {
	p, ok := u[namespace]
	return p, ok
}

func (upstreams) Owner(context.Context, string) string { return "" }

func (u upstreams) Has(namespace string) bool {
	_, ok := u[namespace]
	return ok
}

func (u upstreams) Namespaces() []string { return slices.Sorted(maps.Keys(u)) }

func (u upstreams) RootsChanged(tool.Client) {}

func BenchmarkCall(b *testing.B) {
	for _, place := range []struct{ name, path string }{{"own", "/mcp"}, {"relayed", "/mcp/up"}} {
		for _, era := range []wire.Era{wire.Legacy, wire.Modern} {
			b.Run(place.name+"/"+era.String(), func(b *testing.B) {
				h := hub.New(hub.Options{Name: "bench", Version: "1", Tools: newEchoSource(), Upstreams: upstreams{"up": echoPeer{}}})
				defer h.Close(context.Background())
				handler := h.Handler()
				header, body := benchRequest(b, handler, place.path, era)
				b.ReportAllocs()
				b.ResetTimer()
				for b.Loop() {
					r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, place.path, bytes.NewReader(body))
					r.Header = header
					w := &discard{header: http.Header{}}
					handler.ServeHTTP(w, r)
					if w.status != http.StatusOK {
						b.Fatalf("status %d", w.status)
					}
				}
			})
		}
	}
}

func BenchmarkLoopback(b *testing.B) {
	for _, era := range []wire.Era{wire.Legacy, wire.Modern} {
		b.Run(era.String(), func(b *testing.B) {
			h := hub.New(hub.Options{Name: "bench", Version: "1", Tools: newEchoSource()})
			defer h.Close(context.Background())
			server := httptest.NewServer(h.Handler())
			defer server.Close()
			header, body := benchRequest(b, h.Handler(), "/mcp", era)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r, err := http.NewRequest(http.MethodPost, server.URL+"/mcp", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				r.Header = header
				answer, err := httpjsontest.Client.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		})
	}
}

// benchRequest is a tools/call of an era, ready to be posted.
func benchRequest(b *testing.B, handler http.Handler, path string, era wire.Era) (http.Header, []byte) {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	params := `{"name":"echo","arguments":{"message":"hello"}`
	if era == wire.Modern {
		header.Set(wire.HeaderRevision, wire.NewestModern)
		header.Set(wire.HeaderMethod, wire.MethodToolsCall)
		header.Set(wire.HeaderName, "echo")
		params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}`
		return header, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}}`)
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	r.Header = header.Clone()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	session := w.Header().Get(wire.HeaderSession)
	if session == "" {
		b.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	header.Set(wire.HeaderSession, session)
	header.Set(wire.HeaderRevision, wire.NewestLegacy)
	return header, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}}`)
}

// discard is a response that is not read.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkSession measures the memory of an idle session.
func BenchmarkSession(b *testing.B) {
	h := hub.New(hub.Options{Name: "bench", Version: "1", Tools: newEchoSource(), Limits: hub.Limits{Sessions: 1 << 30}})
	defer h.Close(context.Background())
	handler := h.Handler()
	before := heap()
	for b.Loop() {
		post(b, handler, nil, initialize)
	}
	b.ReportMetric(float64(heap()-before)/float64(h.Sessions()), "B/session")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
