//nolint:staticcheck // roots, sampling and logging are deprecated, and must work for years to come
package hub_test

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// The official SDK's client uses the hub over every transport, in both eras.
var transports = []struct {
	name    string
	version string
	connect func(t *testing.T, opts hub.Options) mcp.Transport
}{
	{"http/modern", wire.Revision2607, overHTTP},
	{"http/2025-11-25", wire.Revision2511, overHTTP},
	{"http/2025-06-18", wire.Revision2506, overHTTP},
	{"http/2025-03-26", wire.Revision2503, overHTTP},
	{"sse/2024-11-05", wire.Revision2024, overSSE},
	{"stdio/modern", wire.Revision2607, overStdio},
	{"stdio/2025-11-25", wire.Revision2511, overStdio},
}

func overHTTP(t *testing.T, opts hub.Options) mcp.Transport {
	_, url := serve(t, opts)
	return &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}
}

func overSSE(t *testing.T, opts hub.Options) mcp.Transport {
	_, url := serve(t, opts)
	return &mcp.SSEClientTransport{Endpoint: url + "/mcp/sse"}
}

func overStdio(t *testing.T, opts hub.Options) mcp.Transport {
	h, _ := serve(t, opts)
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- h.ServeStdio(context.Background(), serverIn, serverOut)
		serverOut.Close()
	}()
	t.Cleanup(func() {
		clientOut.Close()
		if err := <-ended; err != nil {
			t.Errorf("stdio: %v", err)
		}
	})
	return &mcp.IOTransport{Reader: clientIn, Writer: clientOut}
}

// peer is a client of the SDK that records what it receives.
type peer struct {
	*mcp.ClientSession
	client   *mcp.Client
	progress chan *mcp.ProgressNotificationParams
	logs     chan *mcp.LoggingMessageParams
	updated  chan string
	changed  chan struct{}
}

// note passes a value on unless the channel is full. A notification that the test repeats
// until it arrives may arrive several times, when the test no longer reads.
func note[T any](received chan<- T, value T) {
	select {
	case received <- value:
	default:
	}
}

func connect(t *testing.T, transport mcp.Transport, version string) *peer {
	t.Helper()
	p := &peer{
		progress: make(chan *mcp.ProgressNotificationParams, 16),
		logs:     make(chan *mcp.LoggingMessageParams, 16),
		updated:  make(chan string, 16),
		changed:  make(chan struct{}, 16),
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "Paris"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { p.progress <- r.Params },
		LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { p.logs <- r.Params },
		ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { note(p.updated, r.Params.URI) },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { note(p.changed, struct{}{}) },
	})
	client.AddRoots(&mcp.Root{URI: "file:///home", Name: "home"})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { session.Close() })
	p.ClientSession, p.client = session, client
	return p
}

func TestSDKClient(t *testing.T) {
	t.Parallel()
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			c := new(changes)
			tools := newSwitch(protocolTools())
			tools.set("three", asks(askName,
				tool.Question{Key: "capital", Method: wire.MethodSample, Params: json.RawMessage(`{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"?"}}]}`)},
				tool.Question{Key: "roots", Method: wire.MethodRoots}))
			opts := options(t, tools)
			opts.Changes = c.watch
			opts.Limits.Page = 3
			p := connect(t, tr.connect(t, opts), tr.version)
			if got := p.InitializeResult().ServerInfo.Name; got != "test" {
				t.Errorf("server is called %q", got)
			}
			checkLists(t, p)
			checkCalls(t, p)
			checkNotifications(t, p, tr.version)
			checkQuestions(t, p, tr.version)
			checkChanges(t, p, c, tools)
		})
	}
}

func checkLists(t *testing.T, p *peer) {
	t.Helper()
	var names []string
	for tool, err := range p.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatalf("list tools: %v", err)
		}
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "ask echo fail invalid panic refuse report three" {
		t.Errorf("tools: %s", got)
	}
	read, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://a"})
	if err != nil || read.Contents[0].Text != "A" {
		t.Errorf("read: %v, %v", read, err)
	}
	prompt, err := p.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "Ada"}})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "greet Ada" {
		t.Errorf("prompt: %v, %v", prompt, err)
	}
	complete, err := p.Complete(t.Context(), &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "w"},
	})
	if err != nil || complete.Completion.Values[0] != "world" {
		t.Errorf("complete: %v, %v", complete, err)
	}
}

func checkCalls(t *testing.T, p *peer) {
	t.Helper()
	if _, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
		t.Errorf("unknown tool: %v", err)
	}
	failed, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"})
	if err != nil || !failed.IsError {
		t.Errorf("failing tool: %v, %v", failed, err)
	}
}

func checkNotifications(t *testing.T, p *peer, version string) {
	t.Helper()
	modern := version == wire.Revision2607
	params := &mcp.CallToolParams{Name: "report", Meta: mcp.Meta{}}
	if modern {
		params.Meta[wire.MetaLogLevel] = "warning"
	} else if err := p.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "warning"}); err != nil {
		t.Errorf("set level: %v", err)
	}
	params.SetProgressToken("tok")
	if _, err := p.CallTool(t.Context(), params); err != nil {
		t.Fatalf("report: %v", err)
	}
	for _, want := range []float64{0.5, 1} {
		if got := <-p.progress; got.Progress != want || got.ProgressToken != "tok" {
			t.Errorf("progress %v with token %v, want %v", got.Progress, got.ProgressToken, want)
		}
	}
	if got := <-p.logs; got.Level != "warning" {
		t.Errorf("log %v", got)
	}
}

func checkQuestions(t *testing.T, p *peer, version string) {
	t.Helper()
	if version == wire.Revision2024 || version == wire.Revision2503 {
		return // the SDK does not declare elicitation there
	}
	checkQuestionsThrough(t, p)
}

func checkChanges(t *testing.T, p *peer, c *changes, s *switchable) {
	t.Helper()
	if err := p.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://a"}); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	// The SDK does not wait until a modern server has acknowledged a subscription,
	// so the first updates may come too early.
	for received := false; !received; {
		c.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://b"}`))
		c.tell(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"test://a"}`))
		select {
		case got := <-p.updated:
			if received = true; got != "test://a" {
				t.Errorf("updated %s, which was not subscribed to", got)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
	for n := 0; ; n++ { // for the same reason
		s.set("new"+strconv.Itoa(n), echo)
		c.tell(wire.NoteToolsChanged, nil)
		select {
		case <-p.changed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// switchable is a source whose tools change.
type switchable struct {
	mu    sync.Mutex
	tools tools
}

func newSwitch(t tools) *switchable { return &switchable{tools: t} }

func (s *switchable) set(name string, run func(context.Context, tool.Call) (tool.Result, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools[name] = run
}

func (s *switchable) Tools(ctx context.Context) ([]tool.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools.Tools(ctx)
}

func (s *switchable) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	s.mu.Lock()
	run, ok := s.tools[call.Ref.Name]
	s.mu.Unlock()
	if !ok {
		return s.tools.Call(ctx, call)
	}
	return run(ctx, call)
}
