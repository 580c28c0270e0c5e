package toolsapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// source has tools with the hard parts of schemas.
type source struct{}

var listed = []tool.Info{
	{
		Ref: tool.Ref{Name: "echo"}, Title: "Echo", Description: "Answers its arguments.", Hints: tool.Hints{ReadOnly: true},
		Input: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","minLength":1},"default":{"$ref":"#/$defs/color"}},"required":["text"],"$defs":{"color":{"enum":["red","#/$defs/color"]}}}`),
	},
	{
		Ref:    tool.Ref{Space: "tree", Name: "grow/{it}"},
		Input:  json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"node":{"$ref":"#/$defs/node"},"more":{"$ref":"#"},"left":{"$ref":"#/$defs/node/properties/left"}},"$defs":{"node":{"type":"object","properties":{"left":{"$ref":"#/$defs/node"},"n":{"type":"integer","default":7}}}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{"height":{"type":"number"}},"required":["height"]}`),
	},
	{Ref: tool.Ref{Space: "tree", Name: "grow__it_"}, Input: json.RawMessage(`{"type":"object"}`)},
}

func (source) Tools(context.Context) ([]tool.Info, error) { return listed, nil }

func (source) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	switch call.Ref.String() {
	case "echo":
		return tool.Output("an echo", map[string]any{"args": call.Args, "who": principal.Of(ctx).ID, "caller": call.Caller.ID})
	case "tree.grow/{it}":
		return tool.Output("grown", map[string]any{"height": 3})
	case "tree.broken":
		return tool.Failure(fault.New(fault.Limit, "too high").WithHint("wait").WithDetails(7)), nil
	case "tree.rude":
		return tool.Failed("no"), nil
	case "tree.busy":
		return tool.Result{}, principal.Exceeded{What: "calls", Of: "tree", Most: 1, After: 1500 * time.Millisecond}.Fault()
	case "tree.picture":
		return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`)}, nil
	}
	return tool.Result{}, fault.New(fault.ToolNotFound, "no tool %q", call.Ref)
}

func newServer(keyRequired bool) http.Handler {
	return principal.Unguarded(New(Options{
		Tools: source{}, Version: "1.2.3", Caller: func(*http.Request) string { return "key:web" },
		KeyRequired: func(context.Context) (bool, error) { return keyRequired, nil },
	}).Routes())
}

func request(t *testing.T, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	newServer(false).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w
}

func TestCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/tools/echo", `{"text":"a","n":12345678901234567890}`, 200, `{"args":{"text":"a","n":12345678901234567890},"caller":"user:key:web","who":"local"}`},
		{"/tools/echo", "", 200, `{"args":{},"caller":"user:key:web","who":"local"}`},
		{"/tools/tree/grow%2F%7Bit%7D", "{}", 200, `{"height":3}`},
		{"/tools/tree/picture", "{}", 200, `[{"type":"image","data":"AAAA","mimeType":"image/png"}]`},
		{"/tools/echo", "[1]", 400, `{"type":"urn:luanette:error:invalid_params","title":"Bad Request","status":400,"detail":"the body is not a JSON object","code":"invalid_params","hint":"send the tool's arguments as an object; GET /openapi.json describes them"}`},
		{"/tools/tree/broken", "{}", 429, `{"type":"urn:luanette:error:limit_exceeded","title":"Too Many Requests","status":429,"detail":"too high","code":"limit_exceeded","hint":"wait","details":7}`},
		{"/tools/tree/rude", "{}", 502, `{"type":"urn:luanette:error:upstream_error","title":"Bad Gateway","status":502,"detail":"no","code":"upstream_error"}`},
		{"/tools/tree/nothing", "{}", 404, `{"type":"urn:luanette:error:tool_not_found","title":"Not Found","status":404,"detail":"no tool \"tree.nothing\"","code":"tool_not_found"}`},
	} {
		w := request(t, http.MethodPost, test.path, test.body)
		if got := strings.TrimSpace(w.Body.String()); w.Code != test.status || got != test.want {
			t.Errorf("%s %s: %d %s, want %d %s", test.path, test.body, w.Code, got, test.status, test.want)
		}
		want := "application/json"
		if test.status != 200 {
			want = "application/problem+json"
		}
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("%s: content type %s, want %s", test.path, got, want)
		}
	}
	if w := request(t, http.MethodPost, "/tools/echo", "{"); w.Code != 400 {
		t.Errorf("not JSON: %d %s", w.Code, w.Body)
	}
	if w := request(t, http.MethodPost, "/tools/echo", strings.Repeat(" ", maxArguments+1)); w.Code != 413 {
		t.Errorf("too large: %d %s", w.Code, w.Body)
	}
	if w := request(t, http.MethodPost, "/tools/tree/busy", "{}"); w.Code != 429 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("busy: %d %s", w.Code, w.Header())
	}
}

// waiting is a tool that answers when it may.
type waiting struct {
	source
	answer chan struct{}
}

func (w waiting) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	select {
	case <-w.answer:
		return w.source.Call(ctx, call)
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
}

// TestDrain lets calls finish while a server stops, and refuses further ones.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tools := waiting{answer: make(chan struct{})}
		s := New(Options{Tools: tools})
		handler := principal.Unguarded(s.Routes())
		call := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/tools/tree/grow%2F%7Bit%7D", nil))
			return w
		}
		answers, drained := make(chan int, 1), make(chan int, 1)
		go func() { answers <- call().Code }()
		synctest.Wait()
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		if left := s.Drain(impatient); left != 1 {
			t.Errorf("%d calls were left", left)
		}
		go func() { drained <- s.Drain(t.Context()) }()
		synctest.Wait()
		if w := call(); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "shutting down") {
			t.Errorf("a call that came later: %d %s", w.Code, w.Body)
		}
		if len(drained) != 0 {
			t.Error("a call that is under way is not awaited")
		}
		close(tools.answer)
		if code, left := <-answers, <-drained; code != http.StatusOK || left != 0 {
			t.Errorf("the call was answered with %d, %d calls were left", code, left)
		}
	})
}

func TestDefinitionsBecomeComponents(t *testing.T) {
	t.Parallel()
	data := tool.Info{Ref: tool.Ref{Name: "data"}, Input: json.RawMessage(`{"type":"object","properties":{"properties":{"default":{"$ref":"#/$defs/node"},"anyOf":[{"$ref":"#"},true]}}}`)}
	d := newDocument(append([]tool.Info{data}, listed...), "1", true)
	for name, want := range map[string]string{
		"echo.input":                 `{"type":"object","properties":{"text":{"type":"string","minLength":1},"default":{"$ref":"#/components/schemas/echo.input.color"}},"required":["text"]}`,
		"echo.input.color":           `{"enum":["red","#/$defs/color"]}`,
		"tree__grow__it_.input":      `{"type":"object","properties":{"node":{"$ref":"#/components/schemas/tree__grow__it_.input.node"},"more":{"$ref":"#/components/schemas/tree__grow__it_.input"},"left":{"$ref":"#/components/schemas/tree__grow__it_.input.node/properties/left"}}}`,
		"tree__grow__it_.input.node": `{"type":"object","properties":{"left":{"$ref":"#/components/schemas/tree__grow__it_.input.node"},"n":{"type":"integer","default":7}}}`,
		"data.input":                 `{"type":"object","properties":{"properties":{"default":{"$ref":"#/$defs/node"},"anyOf":[{"$ref":"#/components/schemas/data.input"},true]}}}`,
	} {
		if got := string(d.Components.Schemas[name]); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	if id := d.Paths["/tools/tree/grow__it_"].Post.OperationID; id != "tree__grow__it__2" {
		t.Errorf("the second of two equal ids is %s", id)
	}
	if len(d.Security) != 1 || len(newDocument(listed, "1", false).Security) != 0 {
		t.Errorf("security: %v", d.Security)
	}
}

func TestSelectedNamespaces(t *testing.T) {
	t.Parallel()
	var d document
	if w := request(t, http.MethodGet, "/openapi.json?namespace=tree", ""); json.Unmarshal(w.Body.Bytes(), &d) != nil || len(d.Paths) != 2 {
		t.Errorf("%d paths: %s", len(d.Paths), w.Body)
	}
}

// TestRealReaders validates the document with swagger-parser, and calls tools with a
// client that openapi-client-axios makes from it.
func TestRealReaders(t *testing.T) {
	t.Parallel()
	modules := npmtest.Modules(t)
	server := httptest.NewServer(newServer(true))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/readers.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "readers.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), "node", "readers.mjs", server.URL)
	program.Dir = folder
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := "valid 3.1.0\n{\"text\":\"hello\"}\n{\"height\":3}\n400 application/problem+json invalid_params\n"; string(out) != want {
		t.Errorf("the client said\n%s\nwant\n%s", out, want)
	}
}
