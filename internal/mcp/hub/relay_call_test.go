//nolint:staticcheck // roots, sampling and logging are deprecated, and must work for years to come
package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// sdkServer is a server of the SDK behind the hub.
type sdkServer struct {
	*mcp.Server
	cancelled chan struct{}
	traced    chan string
	url       string
}

func startSDKServer(t *testing.T, era string) *sdkServer {
	t.Helper()
	f := &sdkServer{
		Server: mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, &mcp.ServerOptions{
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		}),
		cancelled: make(chan struct{}, 1),
		traced:    make(chan string, 1),
	}
	f.AddResource(&mcp.Resource{URI: "far://x", Name: "x"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "far://x", Text: "X"}}}, nil
	})
	mcp.AddTool(f.Server, &mcp.Tool{Name: "report"}, farReport)
	mcp.AddTool(f.Server, &mcp.Tool{Name: "three"}, farThree)
	mcp.AddTool(f.Server, &mcp.Tool{Name: "hang"}, f.hang)
	mcp.AddTool(f.Server, &mcp.Tool{Name: "trace"}, f.trace)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return f.Server },
		&mcp.StreamableHTTPOptions{Stateless: era == "modern", PropagateRequestCancellation: true})
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	f.url = server.URL
	return f
}

func farText(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func farReport(ctx context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	if token := r.Params.GetProgressToken(); token != nil {
		for _, p := range []float64{1, 2} {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: p, Total: 2}); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "from far"}); err != nil {
		return nil, nil, err
	}
	return farText("reported"), nil, nil
}

// farThree asks for three things at once, with a result of the modern era; clients of the
// sessions era are asked by requests of the SDK.
func farThree(_ context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	if len(r.Params.InputResponses) == 3 {
		raw, err := json.Marshal(r.Params.InputResponses)
		return farText(string(raw)), nil, err
	}
	return &mcp.CallToolResult{RequestState: "theirs", InputRequests: mcp.InputRequestMap{
		"name": &mcp.ElicitParams{Message: "Name?", RequestedSchema: &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}},
		}},
		"capital": &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "?"}}}},
		"roots":   &mcp.ListRootsParams{},
	}}, nil, nil
}

func (f *sdkServer) hang(ctx context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1}); err != nil {
		return nil, nil, err
	}
	<-ctx.Done()
	f.cancelled <- struct{}{}
	return nil, nil, ctx.Err()
}

func (f *sdkServer) trace(_ context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	f.traced <- fmt.Sprint(r.Params.GetMeta()["traceparent"])
	return farText("traced"), nil, nil
}

// throughHub puts a hub in front of an SDK server, under its original names.
func throughHub(t *testing.T, f *sdkServer, era string) string {
	t.Helper()
	manager := upstream.New(upstream.Options{})
	t.Cleanup(manager.Close)
	if err := manager.Add(upstream.Spec{Name: "far", URL: f.url, Protocol: era, Wait: clocktest.Timeout}); err != nil {
		t.Fatal(err)
	}
	opts := options(t, tools{})
	opts.Upstreams = managed{manager}
	_, url := serve(t, opts)
	return url + "/mcp/far"
}

type managed struct{ *upstream.Manager }

func (m managed) Peer(_ context.Context, namespace string) (hub.Peer, bool) {
	return m.Manager.Peer(namespace)
}

func (managed) Owner(context.Context, string) string { return "" }

// Clients of either era reach servers of either era, with progress, logs, questions,
// traces, cancellation and changes.
func TestThroughTheHub(t *testing.T) {
	t.Parallel()
	for _, up := range []string{"modern", "legacy"} {
		for _, version := range []string{wire.Revision2607, wire.Revision2511} {
			t.Run(version+" to "+up, func(t *testing.T) {
				t.Parallel()
				f := startSDKServer(t, up)
				p := connect(t, &mcp.StreamableClientTransport{Endpoint: throughHub(t, f, up)}, version)
				if got := p.InitializeResult().ServerInfo.Name; got != "far" {
					t.Errorf("server is called %q", got)
				}
				checkNotificationsThrough(t, p, version)
				checkQuestionsThrough(t, p)
				checkTraceThrough(t, p, f)
				checkCancelThrough(t, p, f)
				checkChangesThrough(t, p, f)
			})
		}
	}
}

func checkNotificationsThrough(t *testing.T, p *peer, version string) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "report", Meta: mcp.Meta{}}
	if version == wire.Revision2607 {
		params.Meta[wire.MetaLogLevel] = "info"
	} else if err := p.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Errorf("set level: %v", err)
	}
	params.SetProgressToken("mine")
	if _, err := p.CallTool(t.Context(), params); err != nil {
		t.Fatalf("report: %v", err)
	}
	for want := range 2 {
		if got := <-p.progress; got.Progress != float64(want+1) || got.ProgressToken != "mine" {
			t.Errorf("progress %v with token %v", got.Progress, got.ProgressToken)
		}
	}
	if got := <-p.logs; got.Data != "from far" {
		t.Errorf("log %v", got.Data)
	}
}

func checkQuestionsThrough(t *testing.T, p *peer) {
	t.Helper()
	got, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "three"})
	if err != nil {
		t.Fatalf("ask three: %v", err)
	}
	text := got.Content[0].(*mcp.TextContent).Text
	for _, want := range []string{"Ada", "Paris", "file:///home"} {
		if !strings.Contains(text, want) {
			t.Errorf("answers %s lack %s", text, want)
		}
	}
}

func checkTraceThrough(t *testing.T, p *peer, f *sdkServer) {
	t.Helper()
	if _, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "trace", Meta: mcp.Meta{"traceparent": inMeta}}); err != nil {
		t.Fatalf("trace: %v", err)
	}
	if got := <-f.traced; got != inMeta {
		t.Errorf("the upstream sees the trace %s", got)
	}
}

func checkCancelThrough(t *testing.T, p *peer, f *sdkServer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	params := &mcp.CallToolParams{Name: "hang", Meta: mcp.Meta{}}
	params.SetProgressToken("hang")
	go func() {
		_, err := p.CallTool(ctx, params)
		failed <- err
	}()
	<-p.progress // it runs
	cancel()
	<-f.cancelled
	if err := <-failed; err == nil {
		t.Error("the cancelled call was answered")
	}
}

func checkChangesThrough(t *testing.T, p *peer, f *sdkServer) {
	t.Helper()
	if err := p.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "far://x"}); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	// The subscription travels over two hops; the first updates may come too early.
	for received := false; !received; {
		if err := f.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "far://x"}); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-p.updated:
			if received = true; got != "far://x" {
				t.Errorf("updated %s", got)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	mcp.AddTool(f.Server, &mcp.Tool{Name: "new"}, farReport)
	<-p.changed
}
