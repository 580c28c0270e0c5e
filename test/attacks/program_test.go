// Package attacks performs the attacks of docs/security-attacks.md against the whole
// program, one test per row. Other rows have their tests in the package that protects
// against them; page_test.go checks that the page names all of them.
package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
	"github.com/luanette/luanette/internal/server"
)

// program is a running server.
type program struct {
	t    *testing.T
	url  string
	data string
	log  *log
}

// log collects standard error and finds the address of the server in it.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and made anew when something is written
	at   chan string
	once sync.Once
}

var listening = regexp.MustCompile(`is listening on (\S+)`)

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.more)
	l.more = make(chan struct{})
	if m := listening.FindSubmatch(l.text.Bytes()); m != nil {
		l.once.Do(func() { l.at <- string(m[1]) })
	}
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// note adds a line.
func (l *log) note(text string) { _, _ = l.Write([]byte(text + "\n")) }

// await waits until the log contains a text.
func (l *log) await(t *testing.T, what string) {
	t.Helper()
	late := time.After(clocktest.Timeout)
	for {
		l.mu.Lock()
		found, more := bytes.Contains(l.text.Bytes(), []byte(what)), l.more
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%q was never logged:\n%s", what, l)
		}
	}
}

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	os.Exit(m.Run())
}

// serve starts the program with a configuration. It ends with the test, or with end.
func serve(t *testing.T, text string, env config.Environment) (h *program, end func()) {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "luanette.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h = &program{t: t, data: filepath.Join(folder, "data"), log: &log{at: make(chan string, 1), more: make(chan struct{})}}
	loaded, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"listen": "127.0.0.1:0", "data": h.data, "log.level": "debug", "scripts.cache": jstest.Cache(), "scripts.code_timeout": "1m"}})
	if err != nil {
		t.Fatal(err)
	}
	built, err := server.Build(t.Context(), loaded, server.Options{Version: "test", Stderr: h.log, Env: env, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- built.Serve(ctx) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(end)
	select {
	case h.url = <-h.log.at:
	case err := <-ended:
		t.Fatalf("the server did not start: %v\n%s", err, h.log)
	}
	return h, end
}

// ask makes a request and returns status and body.
func (h *program) ask(method, path, body string, headers map[string]string) (int, string) {
	h.t.Helper()
	all := []string{"Accept", "application/json, text/event-stream"}
	for name, value := range headers {
		all = append(all, name, value)
	}
	answer, text := httpjsontest.Read(h.t, method, h.url+path, body, all...)
	return answer.StatusCode, text
}

// call calls a tool as an MCP client does, and returns the whole answer.
func (h *program) call(tool string, args any, headers map[string]string) string {
	h.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	all := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
	for name, value := range headers {
		all[name] = value
	}
	_, text := h.ask(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+string(raw)+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`, all)
	return text
}

// await calls a tool until its answer contains a text.
func (h *program) await(tool string, args any, want string) string {
	h.t.Helper()
	return h.awaitAs(nil, tool, args, want)
}

// awaitAs is await with headers.
func (h *program) awaitAs(headers map[string]string, tool string, args any, want string) string {
	h.t.Helper()
	var text string
	clocktest.Await(h.t, func() bool {
		text = h.call(tool, args, headers)
		return strings.Contains(text, want)
	}, func() string { return tool + " never answered " + want + ": " + text })
	return text
}

// toolServer is an MCP server that records the headers it receives.
type toolServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []http.Header
}

func newToolServer(t *testing.T) *toolServer {
	tools := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	type input struct {
		Text string `json:"text"`
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, input, error) {
		return nil, in, nil
	})
	n := &toolServer{}
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true})
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.seen = append(n.seen, r.Header.Clone())
		n.mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(n.Close)
	return n
}

// headers returns all received headers as text.
func (n *toolServer) headers() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all bytes.Buffer
	for _, header := range n.seen {
		_ = header.Write(&all)
	}
	return all.String()
}
