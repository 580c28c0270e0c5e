package upstream_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// seen records the headers of requests, by method of the message.
type seen struct {
	mu      sync.Mutex
	headers map[string]http.Header
	params  map[string]json.RawMessage
	gets    []string // Last-Event-ID of each GET
}

func (s *seen) around(inner http.Handler) http.Handler {
	s.headers, s.params = map[string]http.Header{}, map[string]json.RawMessage{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		m, _ := wire.Parse(body)
		s.mu.Lock()
		if r.Method == http.MethodGet {
			s.gets = append(s.gets, r.Header.Get("Last-Event-Id"))
		}
		s.headers[m.Method], s.params[m.Method] = r.Header.Clone(), m.Params
		s.mu.Unlock()
		inner.ServeHTTP(w, r)
	})
}

func (s *seen) header(method, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers[method].Get(name)
}

func TestModernRequestsHaveAllHeadersAndMeta(t *testing.T) {
	t.Parallel()
	var s seen
	inner := rawServer{
		wire.MethodDiscover: func(json.RawMessage) string {
			return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		},
		wire.MethodToolsList: func(json.RawMessage) string {
			return `{"tools":[{"name":"übersetze","inputSchema":{"type":"object","properties":{"to":{"type":"string","x-mcp-header":"Language"}}}},
				{"name":"bad","inputSchema":{"type":"object","properties":{"to":{"type":"number","x-mcp-header":"N"}}}}]}`
		},
		wire.MethodToolsCall: func(json.RawMessage) string { return `{"resultType":"complete","content":[]}` },
	}
	srv := httpServer(t, func() http.Handler { return s.around(inner) }, upstream.Spec{Settings: upstream.Settings{Headers: map[string]string{"X-Key": "1"}}})
	h := upstreamtest.Start(t, srv)
	result, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("übersetze"), Args: json.RawMessage(`{"to":"français"}`)})
	if err != nil || string(result.Raw) != `{"content":[]}` {
		t.Fatalf("result = %s, %v", result.Raw, err)
	}
	for name, want := range map[string]string{
		"Mcp-Method":           "tools/call",
		"Mcp-Name":             wire.EncodeHeader("übersetze"),
		"Mcp-Param-Language":   wire.EncodeHeader("français"),
		"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Session-Id":       "",
		"X-Key":                "1",
	} {
		if got := s.header(wire.MethodToolsCall, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	meta := wire.Meta(s.params[wire.MethodToolsCall])
	if revision, _ := rawjson.GetText(meta, wire.MetaRevision); revision != "2026-07-28" {
		t.Errorf("meta = %s", meta)
	}
	if capabilities, _ := rawjson.Get(meta, wire.MetaClientCapabilities); string(capabilities) != `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}` {
		t.Errorf("capabilities of a caller without any = %s", capabilities)
	}
	if st, _ := h.Manager.Status("test"); len(st.Dropped) != 1 || !strings.Contains(st.Dropped[0], "x-mcp-header") {
		t.Errorf("dropped = %v", st.Dropped)
	}
}

func TestTraceContextTravelsInMetaAndHeader(t *testing.T) {
	t.Parallel()
	var s seen
	inner := modernHandler()
	srv := httpServer(t, func() http.Handler { return s.around(inner) }, upstream.Spec{})
	srv.Options.Tracer = noop.NewTracerProvider().Tracer("")
	srv.Options.Propagator = propagation.TraceContext{}
	h := upstreamtest.Start(t, srv)
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	ctx := trace.ContextWithSpanContext(t.Context(), parent)
	if _, err := h.Manager.Call(ctx, tool.Call{Ref: ref("echo"), Args: json.RawMessage(`{"text":""}`)}); err != nil {
		t.Fatal(err)
	}
	want := "00-01000000000000000000000000000000-0200000000000000-01"
	if got := s.header(wire.MethodToolsCall, "traceparent"); got != want {
		t.Errorf("header %q, want %q", got, want)
	}
	if got, _ := rawjson.GetText(wire.Meta(s.params[wire.MethodToolsCall]), "traceparent"); got != want {
		t.Errorf("meta %q, want %q", got, want)
	}
}

// If a legacy server no longer knows the session, the call is repeated in a new
// one, even if the tool must not be repeated, because the server refused it.
func TestLostSessionCausesNoError(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{
		http.StatusNotFound:   "",
		http.StatusBadRequest: `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`,
	} {
		var forget atomic.Bool
		inner := legacyHandler()
		srv := httpServer(t, func() http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(wire.HeaderSession) != "" && r.Method == http.MethodPost && forget.CompareAndSwap(true, false) {
					w.Header().Set("Content-Type", wire.ContentJSON)
					w.WriteHeader(status)
					fmt.Fprint(w, body)
					return
				}
				inner.ServeHTTP(w, r)
			})
		}, upstream.Spec{})
		h := upstreamtest.Start(t, srv)
		for range 3 {
			forget.Store(true)
			h.Text(t, "write", json.RawMessage(`{"text":"x"}`))
			if forget.Load() {
				t.Errorf("%d: nothing was forgotten", status)
			}
		}
	}
}

func TestCloseEndsTheSessionAtTheServer(t *testing.T) {
	t.Parallel()
	var ended atomic.Value
	inner := legacyHandler()
	srv := httpServer(t, func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				ended.Store(r.Header.Get(wire.HeaderSession))
			}
			inner.ServeHTTP(w, r)
		})
	}, upstream.Spec{})
	upstreamtest.Start(t, srv).Manager.Close()
	if id, _ := ended.Load().(string); id == "" {
		t.Error("the session was not ended")
	}
}

// An answer that ends early is resumed if the server numbers its events.
func TestBrokenAnswerIsResumed(t *testing.T) {
	t.Parallel()
	var s seen
	var id atomic.Value
	srv := httpServer(t, func() http.Handler {
		return s.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			m, _ := wire.Parse(body)
			switch {
			case r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") == "e1":
				w.Header().Set("Content-Type", wire.ContentEvent)
				fmt.Fprintf(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id.Load())
			case m.Method == wire.MethodToolsCall:
				id.Store(string(m.ID))
				w.Header().Set("Content-Type", wire.ContentEvent)
				fmt.Fprint(w, "id: e1\nretry: 10\ndata: \n\n") // and that was all
			default:
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				rawServer{wire.MethodToolsList: func(json.RawMessage) string { return `{"tools":[` + good + `]}` }}.ServeHTTP(w, r)
			}
		}))
	}, upstream.Spec{})
	h := upstreamtest.Start(t, srv)
	h.Text(t, "good", nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.gets, "e1") {
		t.Errorf("resumed after %q", s.gets)
	}
}

// streamCutter blocks the streams on which a server sends notifications, and only those.
type streamCutter struct {
	mu      sync.Mutex
	blocked bool
	cut     context.CancelFunc
}

func (d *streamCutter) around(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Header.Get(wire.HeaderMethod) != wire.MethodListen {
			inner.ServeHTTP(w, r)
			return
		}
		d.mu.Lock()
		blocked := d.blocked
		ctx, cancel := context.WithCancel(r.Context())
		d.cut = cancel
		d.mu.Unlock()
		if blocked {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		inner.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (d *streamCutter) set(blocked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocked = blocked
	if blocked {
		d.cut()
	}
}

// Tools that change while the stream of notifications is closed are listed when it
// is open again.
func TestLostNotificationsCauseARelist(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]*mcp.StreamableHTTPOptions{"legacy": nil, "modern": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer()
			var cutter streamCutter
			srv := httpServer(t, func() http.Handler {
				return cutter.around(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options))
			}, upstream.Spec{})
			h := upstreamtest.Start(t, srv)
			cutter.set(true)
			h.Text(t, "grow", nil)
			cutter.set(false)
			for {
				e := h.Await(t, "upstream.tools_refreshed").Data.(upstream.ToolsRefreshed)
				if slices.Contains(e.Added, "grown") {
					break
				}
			}
			if status, _ := h.Manager.Status("test"); status.State != upstream.StateConnected {
				t.Errorf("status = %+v", status)
			}
		})
	}
}

func serveTLS(t *testing.T, certificate tls.Certificate, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// A server with a certificate of a private authority is reached with ca_file, its own or
// that of all upstreams.
func TestPrivateAuthority(t *testing.T) {
	t.Parallel()
	file, certificate := certpooltest.New(t)
	for name, handler := range map[string]func() http.Handler{"modern": modernHandler, "legacy": legacyHandler, "sse": sseHandler} {
		for _, own := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				srv := upstreamtest.Server{Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{URL: serveTLS(t, certificate, handler())}}, Options: options(t)}
				if own {
					srv.Spec.CAFile = file
				} else {
					srv.Options.CAFile = file
				}
				h := upstreamtest.Start(t, srv)
				if text := h.Echo(t, "secure"); text != "secure" {
					t.Errorf("echo said %q", text)
				}
			})
		}
	}
}

// Without it, the status says what to do.
func TestUnknownAuthority(t *testing.T) {
	t.Parallel()
	_, certificate := certpooltest.New(t)
	url := serveTLS(t, certificate, modernHandler())
	for file, want := range map[string]string{"": "unknown authority", "missing.pem": "no such file"} {
		h := upstreamtest.Open(t, upstreamtest.Server{Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{URL: url, CAFile: file}}, Options: options(t)})
		h.Await(t, "upstream.reconnecting")
		st, _ := h.Manager.Status("test")
		if !strings.Contains(st.LastError, want) || !strings.Contains(st.Hint, "ca_file") {
			t.Errorf("ca_file %q: %s, hint %q", file, st.LastError, st.Hint)
		}
	}
}
