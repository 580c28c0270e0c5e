package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Exit(playServer())
	}
	idle := []goleak.Option{
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
	}
	goleak.VerifyTestMain(clocktest.Settled(m, idle...), idle...)
}

// tools are functions by name, as a tool.Source.
type tools map[string]func(context.Context, tool.Call) (tool.Result, error)

func (s tools) Tools(context.Context) ([]tool.Info, error) {
	var infos []tool.Info
	for _, name := range slices.Sorted(maps.Keys(s)) {
		infos = append(infos, tool.Info{
			Ref: tool.Ref{Name: name}, Description: "Is called " + name, Input: json.RawMessage(`{"type":"object"}`),
		})
	}
	return infos, nil
}

func (s tools) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	run, ok := s[call.Ref.Name]
	if !ok {
		return tool.Result{}, fault.New(fault.ToolNotFound, "no tool named %q", call.Ref.Name)
	}
	return run(ctx, call)
}

func echo(_ context.Context, call tool.Call) (tool.Result, error) {
	args := call.Args
	if args == nil {
		args = json.RawMessage("null")
	}
	return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"hi"}],"structuredContent":` + string(args) + `,"vendor":1e400}`)}, nil
}

func textResult(s string) tool.Result {
	r, err := tool.Output(s, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// asks makes a tool that asks questions and returns their answers.
func asks(questions ...tool.Question) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		answers, err := call.Caller.Ask(ctx, questions)
		if err != nil {
			return tool.Result{}, err
		}
		var parts []string
		for _, a := range answers {
			parts = append(parts, string(a))
		}
		return textResult(strings.Join(parts, " ")), nil
	}
}

var askName = tool.Question{Key: "name", Method: wire.MethodElicit,
	Params: json.RawMessage(`{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)}

// things are resources and prompts of fixed content.
type things struct{}

func (things) List(_ context.Context, method string) ([]json.RawMessage, error) {
	switch method {
	case wire.MethodResourcesList:
		return []json.RawMessage{
			json.RawMessage(`{"uri":"test://a","name":"a"}`),
			json.RawMessage(`{"uri":"test://b","name":"b"}`),
			json.RawMessage(`{"uri":"test://c","name":"c"}`),
		}, nil
	case wire.MethodResourceTemplates:
		return []json.RawMessage{json.RawMessage(`{"uriTemplate":"test://{x}","name":"x"}`)}, nil
	}
	return []json.RawMessage{json.RawMessage(`{"name":"greet","arguments":[{"name":"who"}]}`)}, nil
}

func (things) Request(_ context.Context, method string, params json.RawMessage, _ *tool.Caller) (json.RawMessage, error) {
	switch method {
	case wire.MethodResourcesRead:
		if uri, _ := rawjson.GetText(params, "uri"); uri != "test://a" {
			return nil, fault.New(fault.NotFound, "no resource %q", uri)
		}
		return json.RawMessage(`{"contents":[{"uri":"test://a","text":"A"}]}`), nil
	case wire.MethodPromptsGet:
		args, _ := rawjson.Get(params, "arguments")
		who, _ := rawjson.GetText(args, "who")
		return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"greet ` + who + `"}}]}`), nil
	}
	return json.RawMessage(`{"completion":{"values":["world"]}}`), nil
}

func (things) Subscribe(context.Context, string) (release func(), err error) { return func() {}, nil }

// changes announces changes to the hub.
type changes struct {
	mu     sync.Mutex
	notify hub.Notify
}

func (c *changes) watch(notify hub.Notify) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notify = notify
	return func() {}
}

func (c *changes) tell(method string, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notify(method, params, nil)
}

// options serve tools, and fixed resources, prompts and completions.
func options(t testing.TB, source tool.Source) hub.Options {
	return hub.Options{
		Name: "test", Version: "1", Tools: source, Offers: things{},
		Changes: new(changes).watch,
		Log:     slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// serve runs a hub on a loopback address until the test ends.
func serve(t testing.TB, opts hub.Options) (*hub.Hub, string) {
	t.Helper()
	h := hub.New(opts)
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // cancels what still runs
		h.Close(ctx)
		server.Close()
	})
	return h, server.URL
}

// client posts messages as a client of one era would.
type client struct {
	t       testing.TB
	url     string
	modern  bool
	session string
	caps    string // what it declares
}

// modernMeta are the members of a modern request's _meta.
func (c *client) modernMeta() string {
	caps := c.caps
	if caps == "" {
		caps = "{}"
	}
	return `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + caps
}

// initialize opens a session.
func (c *client) initialize(version string) {
	c.t.Helper()
	caps := c.caps
	if caps == "" {
		caps = "{}"
	}
	answer := c.post(context.Background(), `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"`+version+
		`","capabilities":`+caps+`,"clientInfo":{"name":"t","version":"1"}}}`)
	defer answer.Body.Close()
	c.session = answer.Header.Get(wire.HeaderSession)
	if c.session == "" {
		c.t.Fatalf("initialize: no session, status %d", answer.StatusCode)
	}
	note := c.post(context.Background(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	note.Body.Close()
	if note.StatusCode != http.StatusAccepted {
		c.t.Fatalf("initialized: status %d", note.StatusCode)
	}
}

// request is a request's HTTP form, with the headers its era demands.
func (c *client) request(ctx context.Context, method, body string) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set(wire.HeaderSession, c.session)
	}
	if c.modern {
		m, err := wire.Parse([]byte(body))
		if err != nil {
			c.t.Fatalf("%s: %v", body, err)
		}
		r.Header.Set(wire.HeaderRevision, wire.NewestModern)
		r.Header.Set(wire.HeaderMethod, m.Method)
		if name, ok := wire.NameOf(m.Method, m.Params); ok {
			r.Header.Set(wire.HeaderName, wire.EncodeHeader(name))
		}
	}
	return r
}

func (c *client) post(ctx context.Context, body string) *http.Response {
	c.t.Helper()
	answer, err := httpjsontest.Client.Do(c.request(ctx, http.MethodPost, body))
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// call makes the body of a tools/call in the client's era. more are further
// members of params, each with a comma before it.
func (c *client) call(id, name, more string) string {
	if c.modern {
		more += `,"_meta":{` + c.modernMeta() + `}`
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":{}` + more + `}}`
}

// answer reads the one JSON message of a response.
func answer(t testing.TB, r *http.Response) wire.Message {
	t.Helper()
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wire.Parse(body)
	if err != nil {
		t.Fatalf("status %d, body %q: %v", r.StatusCode, body, err)
	}
	return m
}

// events reads a response as a stream.
func events(t testing.TB, r *http.Response) *sse.Reader {
	t.Helper()
	if kind := r.Header.Get("Content-Type"); kind != wire.ContentEvent {
		body, _ := io.ReadAll(r.Body)
		t.Fatalf("want a stream, got %s: %s", kind, body)
	}
	t.Cleanup(func() { r.Body.Close() })
	return sse.NewReader(bufio.NewReader(r.Body), 0)
}

// next reads the next message of a stream, past events without one.
func next(t testing.TB, in *sse.Reader) wire.Message {
	t.Helper()
	for {
		e, err := in.Next()
		if err != nil {
			t.Fatalf("next event: %v", err)
		}
		if len(e.Data) == 0 {
			continue
		}
		m, err := wire.Parse(e.Data)
		if err != nil {
			t.Fatalf("event %q: %v", e.Data, err)
		}
		return m
	}
}
