package upstream_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

// The test binary is also the servers it tests against: with this variable set
// it serves on its standard streams instead of testing.
const roleVariable = "UPSTREAM_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if pause, err := time.ParseDuration(os.Getenv("START_AFTER")); err == nil {
			time.Sleep(pause) // a server that starts slowly
		}
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is a server by the name of its role.
func play(role string) int {
	if role == "sdk" {
		writePID()
		if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, "server ended:", err)
		}
		return 0
	}
	if role == "minimal" {
		return playMinimal()
	}
	if role == "person" {
		return playPerson()
	}
	if role == "reader" {
		return playReader()
	}
	if role == "conformance" {
		return playConformance()
	}
	return playMisbehaving(role)
}

// stdioSpec starts this binary in a role.
func stdioSpec(t testing.TB, role string) upstream.Spec {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Spec{Name: "test", Settings: upstream.Settings{Command: binary, Env: map[string]string{roleVariable: role}, Wait: duration.Duration(clocktest.Timeout)}}
}

type text struct {
	Text string `json:"text"`
}

// newServer has the tools of the suite and some more.
func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, &mcp.ServerOptions{Instructions: "be nice", PageSize: 3})
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Annotations: reads}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return say(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "write"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return say(in.Text), nil, nil
	})
	var count atomic.Int64
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		count.Add(1)
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "cancelled", Annotations: reads}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return say(fmt.Sprint(count.Load())), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "steps"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for i := range 5 {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 5, Message: fmt.Sprint("step ", i+1),
			})
		}
		return say("done"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return say("tall"), nil, nil
		})
		return say("growing"), nil, nil
	})
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, askName)
	return s
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// askName asks for the user's name before it answers; the SDK sends legacy clients
// a request for that.
func askName(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
		return say(fmt.Sprintf("%s %v", answer.Action, answer.Content["name"])), nil
	}
	return &mcp.CallToolResult{
		RequestState: "state",
		InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{
			Mode: "form", Message: "who are you?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
		}},
	}, nil
}

// site is an HTTP server that can be stopped and started again at the same
// address.
type site struct {
	handler func() http.Handler

	mu      sync.Mutex
	address string
	server  *http.Server
	done    chan struct{}
}

func newSite(t *testing.T, handler func() http.Handler) *site {
	t.Helper()
	s := &site{address: netguardtest.ReservedAddress(), handler: handler}
	s.up(t)
	t.Cleanup(func() { s.down(t) })
	return s
}

func (s *site) url() string { return "http://" + s.address }

func (s *site) up(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var listener net.Listener
	clocktest.Await(t, func() (ok bool) { // a process just being started may still hold the old one
		var err error
		listener, err = net.Listen("tcp", s.address)
		return err == nil
	})
	s.address = listener.Addr().String()
	server, done := &http.Server{Handler: s.handler()}, make(chan struct{})
	s.server, s.done = server, done
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
}

// down cuts all connections.
func (s *site) down(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Close()
	<-s.done
}

// httpServer runs the suite's server behind an HTTP handler.
func httpServer(t *testing.T, handler func() http.Handler, spec upstream.Spec) upstreamtest.Server {
	s := newSite(t, handler)
	spec.Name, spec.URL, spec.Wait = "test", s.url()+spec.URL, duration.Duration(clocktest.Timeout)
	return upstreamtest.Server{Spec: spec, Options: options(t), Kill: s.down, Restart: s.up}
}

// options have long timeouts, so that tests do not depend on how fast a server
// answers.
func options(t *testing.T) upstream.Options {
	return upstream.Options{
		CacheDir: t.TempDir(), Getenv: os.LookupEnv, Environ: os.Environ, StopTimeout: time.Second,
		ProbeTimeout: clocktest.Timeout, ConnectTimeout: clocktest.Timeout, HealthTimeout: clocktest.Timeout,
	}
}

func legacyHandler() http.Handler {
	s := newServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

func modernHandler() http.Handler {
	s := newServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
}

func sseHandler() http.Handler {
	s := newServer()
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
}
