//nolint:staticcheck // roots, sampling and logging are deprecated, and must work for years to come
package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// scripted is an upstream that answers by method and records its requests.
type scripted struct {
	answers map[string]func(params json.RawMessage, caller *tool.Caller) (json.RawMessage, error)

	mu       sync.Mutex
	asked    []string
	received chan string // every request, unless nil
	notify   func(string, json.RawMessage)
}

func (s *scripted) Request(_ context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	s.mu.Lock()
	line := method + " " + string(params)
	s.asked = append(s.asked, line)
	received := s.received
	s.mu.Unlock()
	if received != nil {
		received <- line
	}
	if answer, ok := s.answers[method]; ok {
		return answer(params, caller)
	}
	return json.RawMessage("{}"), nil
}

func (*scripted) Find(context.Context, string) (tool.Info, bool) { return tool.Info{}, false }

func (s *scripted) Call(ctx context.Context, call tool.Call, params json.RawMessage) (tool.Result, error) {
	raw, err := s.Request(ctx, wire.MethodToolsCall, params, call.Caller)
	return tool.Result{Raw: raw}, err
}

func (s *scripted) Listed(context.Context, string) []json.RawMessage { return nil }

func (s *scripted) Describe(context.Context) (capabilities, info, instructions json.RawMessage, err error) {
	return json.RawMessage(`{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{}}}`),
		json.RawMessage(`{"name":"up","version":"2"}`), json.RawMessage(`"be kind"`), nil
}

func (s *scripted) Watch(notify func(string, json.RawMessage)) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = notify
	return func() {}
}

func (s *scripted) tell(method, params string) {
	s.mu.Lock()
	notify := s.notify
	s.mu.Unlock()
	notify(method, json.RawMessage(params))
}

func relayTo(t *testing.T, s hub.Peer) string {
	t.Helper()
	opts := options(t, tools{})
	opts.Upstreams = upstreams{"up": s}
	_, url := serve(t, opts)
	return url + "/mcp/up"
}

func TestRelayDescribesTheUpstream(t *testing.T) {
	t.Parallel()
	c := &client{t: t, url: relayTo(t, &scripted{})}
	m := answer(t, c.post(t.Context(), initialize))
	want := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"extensions":{"x/y":{}}},"serverInfo":{"name":"up","version":"2"},"instructions":"be kind"}`
	if string(m.Result) != want {
		t.Errorf("got  %s\nwant %s", m.Result, want)
	}
}

// The protocol's keys of _meta belong to one connection: they are not passed on, in
// either direction.
func TestRelayStripsTheHop(t *testing.T) {
	t.Parallel()
	up := &scripted{answers: map[string]func(json.RawMessage, *tool.Caller) (json.RawMessage, error){
		wire.MethodPromptsGet: func(json.RawMessage, *tool.Caller) (json.RawMessage, error) {
			return json.RawMessage(`{"resultType":"complete","messages":[],"ttlMs":5,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"theirs"},"x":1}}`), nil
		},
	}}
	url := relayTo(t, up)
	modern := &client{t: t, url: url, modern: true}
	m := answer(t, modern.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p","inputResponses":{},"_meta":{"x":1,"progressToken":2,`+modern.modernMeta()+`}}}`))
	if want := `{"resultType":"complete","messages":[],"ttlMs":5,"_meta":{"x":1,"io.modelcontextprotocol/serverInfo":{"name":"up","version":"2"}}}`; string(m.Result) != want {
		t.Errorf("modern got %s", m.Result)
	}
	if want := `prompts/get {"name":"p","_meta":{"x":1}}`; up.asked[0] != want {
		t.Errorf("upstream was asked %s", up.asked[0])
	}
	legacy := &client{t: t, url: url}
	legacy.initialize(wire.NewestLegacy)
	m = answer(t, legacy.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}`))
	if want := `{"messages":[],"_meta":{"x":1}}`; string(m.Result) != want {
		t.Errorf("legacy got %s", m.Result)
	}
}

func TestRelayKeepsErrors(t *testing.T) {
	t.Parallel()
	refuse := func(err error) func(json.RawMessage, *tool.Caller) (json.RawMessage, error) {
		return func(json.RawMessage, *tool.Caller) (json.RawMessage, error) { return nil, err }
	}
	url := relayTo(t, &scripted{answers: map[string]func(json.RawMessage, *tool.Caller) (json.RawMessage, error){
		wire.MethodResourcesRead: refuse(fault.Wrap(fault.Upstream, wire.Errorf(wire.CodeResourceNotFound, "gone"), "read")),
		wire.MethodComplete:      refuse(&wire.Error{Code: 0, Message: "nothing"}),
		wire.MethodToolsCall:     refuse(fault.New(fault.Unavailable, "up is not connected")),
		wire.MethodPromptsList:   refuse(fault.New(fault.Unavailable, "up is not connected").WithHint("wait")),
		"x/custom":               refuse(fault.New(fault.Upstream, "server answered 400")),
		"x/theirs":               refuse(wire.Errorf(7, "theirs")),
	}})
	c := &client{t: t, url: url, modern: true}
	for _, s := range []struct {
		method, params string
		status         int
		code           int64
	}{
		{"resources/read", `"uri":"u",`, 200, wire.CodeInvalidParams}, // the modern code
		{"completion/complete", ``, 200, wire.CodeInternal},           // never zero
		{"prompts/list", ``, 200, wire.CodeInternal},
		{"x/custom", ``, 404, wire.CodeMethodNotFound},
		{"x/theirs", ``, 200, 7},
	} {
		r := c.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"`+s.method+`","params":{`+s.params+`"_meta":{`+c.modernMeta()+`}}}`)
		if m := answer(t, r); r.StatusCode != s.status || m.Error == nil || m.Error.Code != s.code {
			t.Errorf("%s: status %d, %v", s.method, r.StatusCode, m.Error)
		}
	}
	if m := answer(t, c.post(t.Context(), c.call("2", "any", ""))); !rawjson.GetBool(m.Result, "isError") {
		t.Errorf("a tool that cannot be reached: %s, %v", m.Result, m.Error)
	}
}

func TestRelayRefusesInvalidResults(t *testing.T) {
	t.Parallel()
	c := &client{t: t, modern: true, url: relayTo(t, &scripted{answers: map[string]func(json.RawMessage, *tool.Caller) (json.RawMessage, error){
		wire.MethodToolsCall: func(json.RawMessage, *tool.Caller) (json.RawMessage, error) { return json.RawMessage(`[1]`), nil },
	}})}
	if m := answer(t, c.post(t.Context(), c.call("1", "any", ""))); m.Error == nil {
		t.Errorf("got %s", m.Result)
	}
}

// One subscription at the upstream serves all clients of the same resource, of either era.
func TestRelaySharesSubscriptions(t *testing.T) {
	t.Parallel()
	up := &scripted{received: make(chan string, 16)}
	url := relayTo(t, up)
	legacy := &client{t: t, url: url}
	legacy.initialize(wire.NewestLegacy)
	legacy.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"u"}}`).Body.Close()
	if got := <-up.received; got != `resources/subscribe {"uri":"u"}` {
		t.Fatalf("asked %s", got)
	}
	modern := &client{t: t, url: url, modern: true}
	ctx, leave := context.WithCancel(t.Context())
	stream := events(t, modern.post(ctx, modern.listen("1", `{"resourceSubscriptions":["u"]}`)))
	next(t, stream) // acknowledged
	up.tell(wire.NoteResourceUpdated, `{"uri":"u"}`)
	if m := next(t, stream); m.Method != wire.NoteResourceUpdated {
		t.Errorf("received %s", m.Method)
	}
	leave()
	legacy.post(t.Context(), `{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"u"}}`).Body.Close()
	if got := <-up.received; got != `resources/unsubscribe {"uri":"u"}` {
		t.Errorf("asked %s, want the one subscription to end after the last reader left", got)
	}
}

// The upstream gets the most verbose level of all sessions.
func TestRelaySetsTheLowestLevel(t *testing.T) {
	t.Parallel()
	up := &scripted{answers: map[string]func(json.RawMessage, *tool.Caller) (json.RawMessage, error){
		wire.MethodSetLevel: func(json.RawMessage, *tool.Caller) (json.RawMessage, error) {
			return nil, wire.Errorf(wire.CodeMethodNotFound, "no such method") // it has no levels
		},
	}}
	url := relayTo(t, up)
	for _, level := range []string{"error", "debug", "warning"} {
		c := &client{t: t, url: url}
		c.initialize(wire.NewestLegacy)
		m := answer(t, c.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"`+level+`"}}`))
		if string(m.Result) != "{}" {
			t.Errorf("set level: %v", m.Error)
		}
	}
	if want := []string{`logging/setLevel {"level":"error"}`, `logging/setLevel {"level":"debug"}`}; !slices.Equal(up.asked, want) {
		t.Errorf("asked %v", up.asked)
	}
}

func TestRelayedLogsAreFiltered(t *testing.T) {
	t.Parallel()
	up := &scripted{}
	c := &client{t: t, url: relayTo(t, up)}
	c.initialize(wire.NewestLegacy)
	r, err := httpjsontest.Client.Do(c.request(t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	stream := events(t, r)
	up.tell(wire.NoteMessage, `{"level":"debug","data":"quiet"}`)
	up.tell(wire.NoteMessage, `{"level":"error","data":"loud"}`)
	if m := next(t, stream); !strings.Contains(string(m.Params), "loud") {
		t.Errorf("received %s", m.Params)
	}
}

// listing is an upstream with one known tool.
type listing struct {
	scripted
	schema string
}

func (l *listing) Find(context.Context, string) (tool.Info, bool) {
	return tool.Info{Input: json.RawMessage(l.schema)}, true
}

// Arguments repeated in headers are checked against the schema that is known at each call.
func TestRelayChecksArgumentsInHeaders(t *testing.T) {
	t.Parallel()
	up := &listing{schema: `{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}`}
	c := &client{t: t, url: relayTo(t, up), modern: true}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"q","arguments":{"r":"eu"},"_meta":{` + c.modernMeta() + `}}}`
	status := func(region string) int {
		r := c.request(t.Context(), http.MethodPost, call)
		if region != "" {
			r.Header.Set("Mcp-Param-Region", region)
		}
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for region, want := range map[string]int{"eu": 200, "us": 400, "": 400, wire.EncodeHeader("eu "): 400, "=?base64?ZXU=?=": 200} {
		if got := status(region); got != want {
			t.Errorf("header %q: status %d, want %d", region, got, want)
		}
	}
	up.schema = `{"type":"object"}`
	if got := status(""); got != 200 {
		t.Errorf("after the annotation was removed: status %d", got)
	}
}

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
	if err := manager.Add(upstream.Spec{Name: "far", Settings: upstream.Settings{URL: f.url, Protocol: era, Wait: duration.Duration(clocktest.Timeout)}}); err != nil {
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
