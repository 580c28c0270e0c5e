package chatapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/tool"
)

// TestContract sends the requests of testdata/contract to a server whose model is a
// stand-in, and compares the responses, streams and webhooks byte by byte. The files are
// the contract with existing clients: a change of one of them is a change for those.
// UPDATE=1 writes them.
func TestContract(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/contract/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		for _, provider := range []string{"anthropic", "openai"} {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+provider, func(t *testing.T) {
				t.Parallel()
				archive, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				want := part(archive, "response") + part(archive, "webhooks")
				got := newContract(t, archive, provider).run(t, archive)
				if os.Getenv("UPDATE") != "" && provider == "anthropic" {
					if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
						t.Fatal(err)
					}
					return
				}
				if got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// part returns a file of an archive.
func part(a *txtar.Archive, name string) string {
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		return ""
	}
	return string(a.Files[i].Data)
}

// setPart replaces a file of an archive.
func setPart(a *txtar.Archive, name, data string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(data)
		}
	}
}

// contract is a server, its model and the receiver of its webhooks.
type contract struct {
	fixture
	hold  chan struct{} // closed when the model may answer
	hooks *received
	at    string // the address of the receiver
}

func newContract(t *testing.T, archive *txtar.Archive, provider string) contract {
	t.Helper()
	steps, err := llmtest.Parse(part(archive, "model"))
	if err != nil {
		t.Fatal(err)
	}
	c := contract{hooks: &received{last: make(chan struct{})}}
	hooks := httptest.NewServer(c.hooks)
	t.Cleanup(hooks.Close)
	c.at = hooks.URL
	options := chatapi.Options{Transcribe: transcriber(t, archive), Debug: true, Token: secret.New("callback token"), Receivers: []string{c.at}, Clock: clock.NewVirtual(time.Date(2026, 11, 17, 9, 30, 0, 0, time.UTC))}
	if during := part(archive, "during"); during != "" {
		c.hold = make(chan struct{})
		steps[0].Hold = c.hold
		if strings.Contains(during, "silence") {
			options.Keepalive = time.Millisecond
		}
	}
	model, err := llm.Open(llm.Options{
		Provider: provider, Model: "claude-sonnet-5-5", BaseURL: llmtest.Play(t, steps...).URL, Key: secret.New(llmtest.Key),
		Retry: llm.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	})
	if err != nil {
		t.Fatal(err)
	}
	answering, err := agent.New(agent.Options{Model: model, Tools: scriptures{}})
	if err != nil {
		t.Fatal(err)
	}
	c.fixture = open(t, answering.Turn, options)
	return c
}

// transcriber is what transcribes voice messages, or nil.
func transcriber(t *testing.T, archive *txtar.Archive) func(context.Context, llm.Media) (string, error) {
	t.Helper()
	if !bytes.Contains(archive.Comment, []byte("transcribed")) {
		return nil
	}
	listener, err := llm.OpenTranscriber(llm.TranscriberOptions{BaseURL: llmtest.Play(t).URL, Key: secret.New(llmtest.Key)})
	if err != nil {
		t.Fatal(err)
	}
	return listener.Transcribe
}

// scriptures is a source of tools.
type scriptures struct{}

func (scriptures) Tools(context.Context) ([]tool.Info, error) {
	input := json.RawMessage(`{"type":"object"}`)
	return []tool.Info{
		{Ref: tool.Ref{Space: "bible", Name: "fetch_scripture"}, Description: "the text of a passage", Input: input},
		{Ref: tool.Ref{Space: "bible", Name: "show_map"}, Description: "a map of a place", Input: input},
	}, nil
}

func (scriptures) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	if call.Ref.Name == "show_map" {
		return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw=="}]}`)}, nil
	}
	return tool.Output("For God so loved the world", nil)
}

// received collects webhooks as they came, with the headers that authenticate them.
type received struct {
	mu   sync.Mutex
	text strings.Builder
	last chan struct{} // closed at the last one
}

func (r *received) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, _ := io.ReadAll(q.Body)
	fmt.Fprintf(&r.text, "Authorization: %s\nX-Engine-Token: %s\n%s\n", q.Header.Get("Authorization"), q.Header.Get("X-Engine-Token"), body)
	if bytes.Contains(body, []byte(`"type":"complete"`)) || bytes.Contains(body, []byte(`"type":"error"`)) {
		close(r.last)
	}
}

// run sends the request of an archive, stores what came back in it, and returns that.
func (c contract) run(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	first, body, _ := strings.Cut(part(archive, "request"), "\n")
	method, path, _ := strings.Cut(first, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, strings.NewReader(strings.ReplaceAll(body, "HOOKS", c.at)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	response := normal(fmt.Sprintf("%d %s\n", answer.StatusCode, answer.Header.Get("Content-Type")) + c.read(t, archive, answer.Body))
	setPart(archive, "response", response)
	if !slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return f.Name == "webhooks" }) {
		return response
	}
	<-c.hooks.last
	c.hooks.mu.Lock()
	defer c.hooks.mu.Unlock()
	setPart(archive, "webhooks", normal(c.hooks.text.String()))
	return response + part(archive, "webhooks")
}

// read reads a response. While the model is silent it waits for a keepalive, or ends the
// server after the first event.
func (c contract) read(t *testing.T, archive *txtar.Archive, body io.Reader) string {
	t.Helper()
	during := strings.TrimSpace(part(archive, "during"))
	var lines []string
	scanner := bufio.NewScanner(body)
	for scanner.Scan() {
		line := scanner.Text()
		if line == "" || slices.Contains(lines, line) && strings.Contains(line, "keepalive") {
			continue
		}
		lines = append(lines, line)
		switch {
		case during == "silence" && strings.Contains(line, "keepalive"):
			close(c.hold)
		case during == "shutdown" && len(lines) == 1:
			c.service.Close()
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

var changing = map[string]*regexp.Regexp{
	"msg_4NQ2LHKXQ7Y5T3ZC6WJDMPVRBA": regexp.MustCompile(`msg_[A-Z2-7]{26}`),
	"req_JX5CV2M7WQY3LBTD6KAZ4NPRSE": regexp.MustCompile(`req_[A-Z2-7]{26}`),
	`"${1}_tokens":100`:              regexp.MustCompile(`"(\w+)_tokens":\d+`), // of the prompt, which others change
	`"call_id":"toolu_1"`:            regexp.MustCompile(`"call_id":"[^"]+"`),
	`"duration_ms":1.5`:              regexp.MustCompile(`"duration_ms":[0-9.e-]+`),
	`"cost_usd":0.0021`:              regexp.MustCompile(`"cost_usd":[0-9.e-]+`),
}

// normal replaces what differs from run to run, or between providers.
func normal(text string) string {
	for fixed, pattern := range changing {
		text = pattern.ReplaceAllString(text, fixed)
	}
	return text
}

// TestErrorsOfProviders checks that clients can tell why a model does not answer.
func TestErrorsOfProviders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, model string
		status      int
		code, retry string
	}{
		{"limited", "status 429 rate_limit_error slower", 429, "MODEL_RATE_LIMITED", "10"},
		{"limited for a time", "status 429 rate_limit_error slower\nafter 42", 429, "MODEL_RATE_LIMITED", "42"},
		{"overloaded", "status 529 overloaded_error busy", 503, "MODEL_UNAVAILABLE", "5"},
		{"overloaded for a time", "status 503 api_error busy\nafter 42", 503, "MODEL_UNAVAILABLE", "42"},
		{"overloaded inside the stream", "error overloaded_error busy", 503, "MODEL_UNAVAILABLE", "5"},
		{"failing", "status 500 api_error oops", 502, "CLAUDE_API_ERROR", "5"},
		{"broken off", "say half\nbreak", 502, "CLAUDE_API_ERROR", "5"},
		{"the key", "status 401 authentication_error no", 502, "MODEL_KEY_REFUSED", ""},
		{"refused", "status 400 invalid_request_error no", 502, "CLAUDE_API_ERROR", ""},
		{"too long", "status 400 invalid_request_error prompt is too long", 413, "CLAUDE_REQUEST_BODY_TOO_LARGE", ""},
	} {
		for _, provider := range []string{"anthropic", "openai"} {
			t.Run(tt.name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				steps := strings.Repeat("---\n"+tt.model+"\n", 8)[4:] // two messages of four attempts
				c := newContract(t, &txtar.Archive{Files: []txtar.File{{Name: "model", Data: []byte(steps)}}}, provider)
				status, body, header := c.ask(t, "POST", "/api/v1/chat", say("hi"))
				var f chatapi.Failure
				if err := json.Unmarshal([]byte(body), &f); err != nil || status != tt.status || f.Code != tt.code || header.Get("Retry-After") != tt.retry {
					t.Errorf("%d %s Retry-After %q", status, body, header.Get("Retry-After"))
				}
				_, body, _ = c.ask(t, "POST", "/api/v1/chat/stream", say("hi again"))
				list := events(t, body)
				if last := list[len(list)-1]; last["code"] != tt.code || last["request_id"] == nil {
					t.Errorf("stream: %v", last)
				}
			})
		}
	}
}

// TestDocumentedEvents checks that docs/chat.md shows an example of every event and
// webhook, exactly as the files of TestContract have it.
func TestDocumentedEvents(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	var produced strings.Builder
	files, _ := filepath.Glob("testdata/contract/*.txtar")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		produced.Write(text)
	}
	for heading, types := range map[string][]string{
		"### Events":    {"status", "progress", "media", "complete", "error", "keepalive", "tool_use", "tool_result"},
		"### Callbacks": {"status", "progress", "complete", "error"},
	} {
		_, section, _ := strings.Cut(string(page), heading+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		shown := map[string]bool{}
		for line := range strings.Lines(section) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "data: ") {
				continue
			}
			if !strings.Contains(produced.String(), "\n"+line+"\n") {
				t.Errorf("%s: no run produces %s", heading, line)
			}
			_, kind, _ := strings.Cut(line, `"type":"`)
			kind, _, _ = strings.Cut(kind, `"`)
			shown[kind] = true
		}
		for _, kind := range types {
			if !shown[kind] {
				t.Errorf("%s has no example of %s", heading, kind)
			}
		}
	}
}
