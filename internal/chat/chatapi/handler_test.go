package chatapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/delivery"
)

type script func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error)

func (s script) Turn(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	return s(ctx, r, emit)
}

// assistant uses a tool and then answers, in two blocks.
func assistant(_ context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	switch r.Message {
	case "model busy":
		return agent.Reply{}, fault.New(fault.Unavailable, "the model is overloaded").WithDetails(map[string]any{"model": "m", "provider_status": 529})
	case "too big":
		return agent.Reply{}, fault.New(fault.Limit, "the prompt is too big")
	case "slow model":
		return agent.Reply{}, fault.New(fault.Timeout, "no answer in time")
	case "our mistake":
		return agent.Reply{}, fault.New(fault.Internal, "oops")
	}
	emit(agent.Text{Block: 0, Text: "Let me "})
	emit(agent.Text{Block: 0, Text: "look."})
	emit(agent.Status{Message: "Executing 1 tool(s)..."})
	emit(agent.ToolUse{ID: "1", Tool: "fs.read", Input: json.RawMessage(`{"path":"secret.txt"}`)})
	emit(agent.ToolResult{ID: "1", Tool: "fs.read", Text: "contents"})
	emit(agent.Text{Block: 1, Text: "Done. All is well. "})
	return agent.Reply{
		Responses: []string{"Let me look.", "Done. All is well. "}, Language: r.Language, Iterations: 2, Model: "m",
		Usage: llm.Usage{Input: 10, Output: 5},
	}, nil
}

// fixture is a handler with its conversation service.
type fixture struct {
	url     string
	service *turn.Service
	logs    *bytes.Buffer
}

func open(t *testing.T, a script, o chatapi.Options, fixed ...apikey.Key) fixture {
	t.Helper()
	return openAt(t, dbtest.Fresh(t), a, o, fixed...)
}

func openAt(t *testing.T, url string, a script, o chatapi.Options, fixed ...apikey.Key) fixture {
	t.Helper()
	database, err := db.Open(t.Context(), url, dbtest.Options(url))
	if err != nil {
		t.Fatal(err)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Deliveries, err = delivery.Open(t.Context(), database, delivery.Options{Clock: o.Clock}); err != nil {
		t.Fatal(err)
	}
	service, err := turn.Open(t.Context(), database, a, turn.Options{OnOutcome: chatapi.Deliver(o.Deliveries, o.Clock.Now), Depth: 2, Servers: servers.Options{Secrets: secret.Box{Key: func() (secret.Text, error) { return secret.New("the key of the test, long enough"), nil }}}})
	if err != nil {
		t.Fatal(err)
	}
	logs := &bytes.Buffer{}
	if o.Log == nil {
		o.Log = slog.New(slog.NewJSONHandler(&locked{w: logs}, nil))
	}
	handler := chatapi.New(service, o)
	running, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		o.Deliveries.Run(running)
	}()
	keys, err := apikey.Open(t.Context(), database, apikey.Options{Fixed: fixed})
	if err != nil {
		t.Fatal(err)
	}
	watch := httpauth.New(httpauth.Options{Keys: keys, Peers: &owner.Peers{Local: owner.AsOwner}})
	server := httptest.NewServer(watch.Mux(handler.Routes()))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		watch.Close()
		service.Close()
		handler.Close()
		stop()
		<-ran
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return fixture{server.URL, service, logs}
}

type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (p fixture) ask(t *testing.T, method, path, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	answer, text := httpjsontest.Read(t, method, p.url+path, body, header...)
	return answer.StatusCode, text, answer.Header
}

// say is a request as the web client makes it.
func say(message string) string {
	body, _ := json.Marshal(map[string]any{"client_id": "web", "user_id": "ann@example.com", "message": message, "message_type": "text"})
	return string(body)
}

// TestAnswer checks the fields that the web client and the WhatsApp gateway expect.
func TestAnswer(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	status, body, _ := p.ask(t, "POST", "/api/v1/chat", say("hi"))
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if fmt.Sprint(answer["responses"]) != "[Let me look. Done. All is well. ]" || answer["response_language"] != "en" {
		t.Errorf("%s", body)
	}
	if audio, there := answer["voice_audio_base64"]; !there || audio != nil {
		t.Errorf("voice_audio_base64 must be null: %s", body)
	}
	if id, _ := answer["message_id"].(string); id == "" {
		t.Errorf("no message_id: %s", body)
	}
	if _, there := answer["intent_processed"]; there {
		t.Errorf("intent_processed must be absent: %s", body)
	}
}

// events reads a stream to its end.
func events(t *testing.T, body string) (list []map[string]any) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); !ok || err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, e)
	}
	return list
}

func TestStream(t *testing.T) {
	t.Parallel()
	for _, debug := range []bool{false, true} {
		t.Run(fmt.Sprint("debug ", debug), func(t *testing.T) {
			t.Parallel()
			p := open(t, assistant, chatapi.Options{Debug: debug})
			_, body, header := p.ask(t, "POST", "/api/v1/chat/stream", say("hi"), "Accept", "text/event-stream")
			for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Connection": "keep-alive", "X-Accel-Buffering": "no"} {
				if got := header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			var types []string
			var text strings.Builder
			list := events(t, body)
			for _, e := range list {
				types = append(types, e["type"].(string))
				if piece, ok := e["text"].(string); ok {
					text.WriteString(piece)
				}
			}
			want := "[status progress progress status progress complete]"
			if debug {
				want = "[status progress progress status tool_use tool_result progress complete]"
			}
			if fmt.Sprint(types) != want {
				t.Errorf("got %v", types)
			}
			if text.String() != "Let me look.\nDone. All is well. " {
				t.Errorf("the pieces are %q", text.String())
			}
			last := list[len(list)-1]["response"].(map[string]any)
			if len(last["responses"].([]any)) != 2 || last["message_id"] == "" {
				t.Errorf("complete: %v", last)
			}
		})
	}
}

func TestStreamSendsErrors(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	status, body, _ := p.ask(t, "POST", "/api/v1/chat/stream", say("model busy"))
	list := events(t, body)
	if last := list[len(list)-1]; status != 200 || last["type"] != "error" || last["code"] != "MODEL_UNAVAILABLE" || !strings.Contains(last["error"].(string), "overloaded") {
		t.Errorf("%d %s", status, body)
	}
}

func TestSilentStreamSendsKeepalives(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	p := open(t, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		<-hold
		return assistant(ctx, r, emit)
	}, chatapi.Options{Keepalive: time.Millisecond})
	r, _ := http.NewRequestWithContext(t.Context(), "POST", p.url+"/api/v1/chat/stream", strings.NewReader(say("hi")))
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `{"type":"keepalive",`) {
	}
	close(hold)
	for lines.Scan() && !strings.Contains(lines.Text(), `"complete"`) {
	}
	if !strings.Contains(lines.Text(), `"complete"`) {
		t.Error("the stream ended without an answer")
	}
}

// TestClientDisconnects checks that a client that disconnects loses the answer but not the turn.
func TestClientDisconnects(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	p := open(t, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		<-hold
		return assistant(ctx, r, emit)
	}, chatapi.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", p.url+"/api/v1/chat/stream", strings.NewReader(say("hi")))
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	cancel()
	close(hold)
	if status, body, _ := p.ask(t, "POST", "/api/v1/chat", say("next")); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	_, body, _ := p.ask(t, "GET", "/api/v1/orgs/default/users/ann@example.com/history", "")
	var history chatapi.History
	if err := json.Unmarshal([]byte(body), &history); err != nil || history.Total != 2 || history.Entries[0].UserMessage != "hi" || history.UserID != "ann@example.com" {
		t.Errorf("%s", body)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	field := func(name, value string) string {
		return `{"client_id":"w","user_id":"u","message":"m","` + name + `":` + value + `}`
	}
	const users = "/api/v1/orgs/o/users/u"
	const admin = "/api/v1/admin/orgs/o"
	tests := []struct {
		name, method, path, body string
		status                   int
		code, summary            string
	}{
		{"not JSON", "POST", "/api/v1/chat", "{", 400, "VALIDATION_ERROR", "Invalid JSON body"},
		{"another type", "POST", "/api/v1/chat", `{"message":7}`, 400, "VALIDATION_ERROR", "message must be a string, not a number"},
		{"a field of the wrong type", "POST", "/api/v1/chat", `{"user_id":3}`, 400, "VALIDATION_ERROR", "user_id"},
		{"no user", "POST", "/api/v1/chat", `{"client_id":"w","message":"m"}`, 400, "VALIDATION_ERROR", "user_id is required"},
		{"no client", "POST", "/api/v1/chat", `{"user_id":"u","message":"m"}`, 400, "VALIDATION_ERROR", "client_id is required"},
		{"no message", "POST", "/api/v1/chat", `{"user_id":"u","client_id":"w","message":" "}`, 400, "VALIDATION_ERROR", "message is required"},
		{"is_admin", "POST", "/api/v1/chat", field("is_admin", "false"), 400, "VALIDATION_ERROR", "is_admin"},
		{"a group", "POST", "/api/v1/chat", field("chat_type", `"group"`), 400, "VALIDATION_ERROR", "only private"},
		{"audio", "POST", "/api/v1/chat", field("audio_base64", `"T2dn"`), 400, "AUDIO_TRANSCRIPTION_ERROR", "send the message as text"},
		{"audio without sound", "POST", "/api/v1/chat", field("message_type", `"audio"`), 400, "AUDIO_TRANSCRIPTION_ERROR", "audio_base64 is required"},
		{"an attachment that is not base64", "POST", "/api/v1/chat", field("attachments", `[{"data":"?"}]`), 400, "VALIDATION_ERROR", "not base64"},
		{"too many attachments", "POST", "/api/v1/chat", field("attachments", "["+strings.Repeat("{},", 10)+"{}]"), 400, "VALIDATION_ERROR", "too many"},
		{"an unknown message type", "POST", "/api/v1/chat", field("message_type", `"smoke"`), 400, "VALIDATION_ERROR", "smoke"},
		{"an invalid language", "POST", "/api/v1/chat", field("response_language_hint", `"english"`), 400, "VALIDATION_ERROR", "BCP 47"},
		{"a control character", "POST", "/api/v1/chat", field("org", `"a\nb"`), 400, "VALIDATION_ERROR", "org"},
		{"too long", "POST", "/api/v1/chat", field("x", `"`+strings.Repeat("x", 201<<10)+`"`), 413, "REQUEST_BODY_TOO_LARGE", "send less"},
		{"no callback URL", "POST", "/api/v1/chat/callback", field("chat_type", `"private"`), 400, "VALIDATION_ERROR", "progress_callback_url is required"},
		{"an invalid callback URL", "POST", "/api/v1/chat/callback", field("progress_callback_url", `"file:///etc/passwd"`), 400, "VALIDATION_ERROR", "http://"},
		{"an invalid progress mode", "POST", "/api/v1/chat/callback", `{"client_id":"w","user_id":"u","message":"m","progress_callback_url":"http://x","progress_mode":"often"}`, 400, "VALIDATION_ERROR", "sentence"},
		{"a busy model", "POST", "/api/v1/chat", say("model busy"), 503, "MODEL_UNAVAILABLE", "overloaded"},
		{"a prompt too long for the model", "POST", "/api/v1/chat", say("too big"), 413, "CLAUDE_REQUEST_BODY_TOO_LARGE", "too big"},
		{"a slow model", "POST", "/api/v1/chat", say("slow model"), 504, "TIMEOUT_ERROR", "in time"},
		{"our mistake", "POST", "/api/v1/chat", say("our mistake"), 500, "INTERNAL_ERROR", "oops"},
		{"an unknown path", "GET", "/api/v1/nothing", "", 404, "NOT_FOUND", "openapi.json"},
		{"another method", "GET", "/api/v1/chat", "", 405, "METHOD_NOT_ALLOWED", "/api/v1/chat does not take GET: use POST"},
		{"a language that is not registered", "PUT", users + "/preferences", `{"response_language":"xx"}`, 400, "VALIDATION_ERROR", "BCP 47"},
		{"words in a language", "POST", "/api/v1/chat", field("response_language_hint", `"en-x-ignore-all-rules"`), 400, "VALIDATION_ERROR", "BCP 47"},
		{"an unknown conversation", "GET", users + "/conversation?id=nosuch", "", 404, "NOT_FOUND", "nosuch"},
		{"preferences", "PUT", users + "/preferences", `{"response_language":"E"}`, 400, "VALIDATION_ERROR", "BCP 47"},
		{"an invalid page", "GET", users + "/history?limit=0", "", 400, "VALIDATION_ERROR", "limit must be"},
		{"an invalid setting", "PUT", admin + "/config", `{"max_history_llm":60}`, 400, "VALIDATION_ERROR", "1 to 50"},
		{"an unknown slot", "PUT", admin + "/prompt-overrides", `{"identiti":"x"}`, 400, "VALIDATION_ERROR", "did you mean identity"},
		{"an unknown server", "DELETE", admin + "/mcp-servers/x", "", 404, "NOT_FOUND", "mcp-servers"},
		{"an invalid server", "POST", admin + "/mcp-servers", `{"id":"x","url":"ftp://x"}`, 400, "VALIDATION_ERROR", "http://"},
		{"no list of servers", "PUT", admin + "/mcp-servers", `{}`, 400, "VALIDATION_ERROR", "servers is missing"},
		{"an unknown mode", "PUT", admin + "/users/u/mode", `{"mode":"x"}`, 404, "NOT_FOUND", "modes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, body, header := p.ask(t, tt.method, tt.path, tt.body)
			var f chatapi.Failure
			if err := json.Unmarshal([]byte(body), &f); err != nil || f.Error == "" || f.RequestID == "" || f.RequestID != header.Get("X-Request-Id") {
				t.Errorf("%s: %v", body, err)
			}
			if status != tt.status || f.Code != tt.code || !strings.Contains(f.Message, tt.summary) {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	began, hold := make(chan struct{}, 3), make(chan struct{})
	p := open(t, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		began <- struct{}{}
		<-hold
		return assistant(ctx, r, emit)
	}, chatapi.Options{})
	for i := range 3 { // one is answered, two wait
		_, err := p.service.Send(t.Context(), conversation.Message{Person: profile.Person{Org: "default", User: "ann@example.com"}, Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-began
		}
	}
	status, body, header := p.ask(t, "POST", "/api/v1/chat", say("one too many"))
	if status != 429 || header.Get("Retry-After") != "5" || !strings.Contains(body, "QUEUE_DEPTH_EXCEEDED") {
		t.Errorf("%d %s %v", status, body, header)
	}
	close(hold)
}

func TestRate(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{Rate: 1})
	p.ask(t, "POST", "/api/v1/chat", say("one"))
	status, body, header := p.ask(t, "POST", "/api/v1/chat", say("two"))
	if status == 200 { // a new minute has just begun
		status, body, header = p.ask(t, "POST", "/api/v1/chat", say("three"))
	}
	if status != 429 || header.Get("Retry-After") != "10" || !strings.Contains(body, "RATE_LIMIT_EXCEEDED") {
		t.Errorf("%d %s", status, body)
	}
}

// key is one whose token is its name and "-key"; acme's is for acme, ada's for ada.
func key(name string, scope principal.Scope) apikey.Key {
	k := apikey.Key{Name: name, Hash: apikey.HashOf(name + "-key"), Rights: apikey.Rights{Scopes: []principal.Scope{scope}}}
	switch name {
	case "acme":
		k.Org = name
	case "ada":
		k.User = name
	}
	return k
}

func TestKeys(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{}, key("web", principal.Chat), key("acme", principal.Org), key("ada", principal.Chat))
	in := func(org string) string { return `{"client_id":"w","user_id":"u","message":"m","org":"` + org + `"}` }
	tests := []struct {
		name, method, path, body, key string
		status                        int
	}{
		{"no key", "POST", "/api/v1/chat", in("acme"), "", 401},
		{"a wrong key", "POST", "/api/v1/chat", in("acme"), "guess", 403},
		{"a key for chat", "POST", "/api/v1/chat", in("acme"), "web-key", 200},
		{"a key for chat at an admin route", "GET", "/api/v1/admin/orgs/acme/config", "", "web-key", 403},
		{"a key of the organisation", "GET", "/api/v1/admin/orgs/acme/config", "", "acme-key", 200},
		{"a key of another organisation", "GET", "/api/v1/admin/orgs/other/config", "", "acme-key", 403},
		{"chat in another organisation", "POST", "/api/v1/chat", in("other"), "acme-key", 403},
		{"chat in its own organisation", "POST", "/api/v1/chat", in("acme"), "acme-key", 200},
		{"a key of another user", "POST", "/api/v1/chat", in("acme"), "ada-key", 403},
		{"the history of another user", "GET", "/api/v1/orgs/acme/users/u/history", "", "ada-key", 403},
		{"the history of its own user", "GET", "/api/v1/orgs/acme/users/ada/history", "", "ada-key", 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			header := []string{"Authorization", "Bearer " + tt.key}
			if tt.key == "" {
				header = nil
			}
			if status, body, _ := p.ask(t, tt.method, tt.path, tt.body, header...); status != tt.status {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	if status, body, _ := p.ask(t, "POST", "/api/v1/chat", say("mine"), "Authorization", "Bearer acme-key"); status != 200 {
		t.Errorf("without an organisation: %d %s", status, body)
	}
	if _, body, _ := p.ask(t, "GET", "/api/v1/orgs/acme/users/ann@example.com/history", "", "Authorization", "Bearer acme-key"); !strings.Contains(body, "mine") {
		t.Errorf("the history in acme: %s", body)
	}
}

// TestNoRouteIsOpen checks that every route requires a key.
func TestNoRouteIsOpen(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{}, key("root", principal.Admin))
	_, body, _ := p.ask(t, "GET", "/api/v1/openapi.json", "")
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil || len(document.Paths) < 10 {
		t.Fatalf("%v: %s", err, body)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			path := strings.NewReplacer("{org}", "o", "{user}", "u", "{server}", "s", "{mode}", "m").Replace(path)
			if status, _, _ := p.ask(t, strings.ToUpper(method), path, "{}"); status != 401 {
				t.Errorf("%s %s: %d", method, path, status)
			}
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	const admin, ann = "/api/v1/admin/orgs/acme", "/api/v1/orgs/acme/users/ann"
	steps := []struct{ method, path, body, want string }{
		{"GET", ann + "/preferences", "", `{"response_language":"en","first_interaction":true}`},
		{"PUT", ann + "/preferences", `{"response_language":"sw"}`, `{"response_language":"sw","first_interaction":true}`},
		{"PUT", ann + "/preferences", `{"agentic_strength":"low","dev_agentic_mcp":true}`, `{"response_language":"sw","first_interaction":true,"agentic_strength":"low","dev_agentic_mcp":true}`},
		{"PUT", ann + "/preferences", `{"response_language":"PT-br"}`, `{"response_language":"pt-BR","first_interaction":true,"agentic_strength":"low","dev_agentic_mcp":true}`},
		{"GET", ann + "/history?limit=3&offset=1", "", `{"user_id":"ann","entries":[],"total_count":0,"limit":3,"offset":1}`},
		{"DELETE", ann + "/history", "", `{"removed":0}`},
		{"GET", admin + "/config", "", `{"max_history_storage":50,"max_history_llm":5}`},
		{"PUT", admin + "/config", `{"max_history_llm":7}`, `{"max_history_storage":50,"max_history_llm":7}`},
		{"DELETE", admin + "/config", "", `{"max_history_storage":50,"max_history_llm":5}`},
		{"POST", admin + "/mcp-servers", `{"id":"a","name":"A","url":"https://a.example","authToken":"hunter2","priority":3}`,
			`{"org":"acme","servers":[{"id":"a","name":"A","url":"https://a.example","authToken":"••••••••","enabled":true,"priority":3}]}`},
		{"GET", admin + "/mcp-servers?discover=true", "",
			`{"org":"acme","servers":[{"id":"a","name":"A","url":"https://a.example","authToken":"••••••••","enabled":true,"priority":3,"discovery_status":"error","discovery_error":"servers cannot be added here"}]}`},
		{"PUT", admin + "/mcp-servers", // what GET has returned
			`{"org":"acme","servers":[{"id":"a","name":"A","url":"https://a.example","authToken":"••••••••","enabled":true,"priority":3,"discovery_status":"ok","tools_count":2}]}`,
			`{"org":"acme","servers":[{"id":"a","name":"A","url":"https://a.example","authToken":"••••••••","enabled":true,"priority":3}]}`},
		{"PUT", admin + "/mcp-servers/a", `{"id":"a","name":"A","url":"https://a.example","authToken":"••••••••","enabled":true,"priority":3,"discovery_status":"error","discovery_error":"x"}`,
			`{"org":"acme","servers":[{"id":"a","name":"A","url":"https://a.example","authToken":"••••••••","enabled":true,"priority":3}]}`},
		{"PUT", admin + "/mcp-servers", `[{"id":"b","name":"","enabled":false}]`, `{"org":"acme","servers":[{"id":"b","name":"","enabled":false,"priority":50}]}`},
		{"DELETE", admin + "/mcp-servers/b", "", `{"removed":1}`},
		{"PUT", admin + "/users/ann/mcp-servers", `[]`, `{"org":"acme","user_id":"ann","servers":[]}`},
		{"PUT", admin + "/modes/study", `{"overrides":{"closing":"Bye."}}`, `{"name":"study","overrides":{"closing":"Bye."}}`},
		{"GET", admin + "/modes", "", `{"modes":["study"]}`},
		{"PUT", admin + "/users/ann/mode", `{"mode":"study"}`, `{"mode":"study"}`},
		{"GET", admin + "/users/ann/mode", "", `{"mode":"study"}`},
		{"DELETE", admin + "/modes/study", "", `{"removed":1}`},
		{"GET", admin + "/users/ann/memory", "", `{"sections":[]}`},
		{"DELETE", admin + "/users/ann/memory", "", `{"removed":1}`},
		{"GET", admin + "/usage?days=2", "", `{"org":"acme","days":2,"users":[]}`},
	}
	for _, step := range steps {
		status, body, _ := p.ask(t, step.method, step.path, step.body)
		if status != 200 || strings.TrimSpace(body) != step.want {
			t.Errorf("%s %s: %d %s", step.method, step.path, status, body)
		}
	}
	_, body, _ := p.ask(t, "PUT", admin+"/prompt-overrides", `{"identity":"You are Ada.","closing":"Bye."}`)
	var overrides chatapi.Overrides
	if err := json.Unmarshal([]byte(body), &overrides); err != nil || overrides.Overrides["identity"] != "You are Ada." || overrides.Resolved["methodology"] == "" {
		t.Errorf("%s", body)
	}
	_, body, _ = p.ask(t, "PUT", admin+"/users/ann/prompt-overrides", `{"closing":"Ciao."}`)
	overrides = chatapi.Overrides{}
	if err := json.Unmarshal([]byte(body), &overrides); err != nil || len(overrides.Overrides) != 1 || overrides.Resolved["closing"] != "Ciao." || overrides.Resolved["identity"] != "You are Ada." {
		t.Errorf("%s", body)
	}
}

// webhooks receives webhooks.
type webhooks struct {
	mu    sync.Mutex
	hooks []chatapi.Webhook
	token string
	last  chan struct{} // closed at the last one
	fail  int           // how many it refuses
}

func (b *webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail > 0 {
		b.fail--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var hook chatapi.Webhook
	_ = json.NewDecoder(r.Body).Decode(&hook)
	b.hooks, b.token = append(b.hooks, hook), r.Header.Get("Authorization")+", "+r.Header.Get("X-Engine-Token")
	if hook.Type == "complete" || hook.Type == "error" {
		close(b.last)
	}
}

func (b *webhooks) lines() (lines []string) {
	for _, h := range b.hooks {
		lines = append(lines, strings.TrimSpace(h.Type+" "+h.Message+h.Text))
	}
	return lines
}

// TestCallbackIsCheckedAtOnce checks that an address or a pause that cannot be used is refused
// with the message, and that the other endpoints say that they use neither.
func TestCallbackIsCheckedAtOnce(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{CheckHost: netguard.Outbound{}.Check})
	send := func(path, fields string) (int, string) {
		status, body, _ := p.ask(t, "POST", path, `{"client_id":"w","user_id":"u","message":"m",`+fields+`}`)
		return status, body
	}
	public := `"progress_callback_url":"https://gateway.example/x"`
	for fields, want := range map[string]string{
		`"progress_callback_url":"http://127.0.0.1:9/x"`:  "allow 127.0.0.1: [mcp] allowed_hosts",
		`"progress_callback_url":"http://localhost/x"`:    "allow localhost: [mcp] allowed_hosts",
		`"progress_callback_url":"http://10.1.2.3/x"`:     "the address is in a private network",
		`"progress_callback_url":"http://[fe80::1]:80/x"`: "the address is in a private network",
		public + `,"progress_throttle_seconds":0.5`:       "must be 1 to 3600, not 0.5",
		public + `,"progress_throttle_seconds":0`:         "must be 1 to 3600, not 0",
		public + `,"progress_throttle_seconds":3601`:      "must be 1 to 3600, not 3601",
	} {
		if status, body := send("/api/v1/chat/callback", fields); status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", fields, status, body)
		}
	}
	ignored := public + `,"progress_mode":"often","progress_throttle_seconds":0`
	for _, path := range []string{"/api/v1/chat", "/api/v1/chat/stream"} {
		status, body := send(path, ignored)
		for _, field := range []string{"progress_callback_url", "progress_mode", "progress_throttle_seconds"} {
			if status != 200 || !strings.Contains(body, "the field "+field+" was ignored: only POST /api/v1/chat/callback uses it") {
				t.Errorf("%s, %s: %d %s", path, field, status, body)
			}
		}
	}
}

func TestCallback(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"complete":  {"complete Let me look.\nDone. All is well."},
		"iteration": {"progress Let me look.", "status Executing 1 tool(s)...", "complete Let me look.\nDone. All is well."},
		"sentence":  {"progress Let me look.", "status Executing 1 tool(s)...", "progress Done. All is well.", "complete Let me look.\nDone. All is well."},
		"periodic":  {"progress Let me look.", "status Executing 1 tool(s)...", "complete Let me look.\nDone. All is well."},
	}
	for mode, want := range tests {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			box := &webhooks{last: make(chan struct{})}
			hooks := httptest.NewServer(box)
			t.Cleanup(hooks.Close)
			p := open(t, assistant, chatapi.Options{Token: secret.New("engine"), Receivers: []string{"https://other.example", strings.ToUpper(hooks.URL[:4]) + hooks.URL[4:]}})
			status, body, _ := p.ask(t, "POST", "/api/v1/chat/callback",
				fmt.Sprintf(`{"client_id":"w","user_id":"u","message":"m","message_key":"k","progress_callback_url":%q,"progress_mode":%q,"progress_throttle_seconds":3600}`, hooks.URL, mode))
			if status != 202 || !strings.Contains(body, `"message_key":"k"`) {
				t.Fatalf("%d %s", status, body)
			}
			<-box.last
			if got := box.lines(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if h := box.hooks[0]; h.UserID != "u" || h.MessageKey != "k" || h.Timestamp.IsZero() || box.token != "Bearer engine, engine" {
				t.Errorf("%+v, %q", h, box.token)
			}
		})
	}
}

// TestCallbackToOthers checks that only receivers of the configuration get the token: callers
// choose the address.
func TestCallbackToOthers(t *testing.T) {
	t.Parallel()
	for name, receivers := range map[string]func(url string) []string{
		"none":            func(string) []string { return nil },
		"another port":    func(url string) []string { return []string{url + "0"} },
		"another scheme":  func(url string) []string { return []string{"https" + strings.TrimPrefix(url, "http")} },
		"the same prefix": func(url string) []string { return []string{url[:len(url)-1]} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := &webhooks{last: make(chan struct{})}
			hooks := httptest.NewServer(box)
			t.Cleanup(hooks.Close)
			p := open(t, assistant, chatapi.Options{Token: secret.New("engine"), Receivers: receivers(hooks.URL)})
			p.ask(t, "POST", "/api/v1/chat/callback", fmt.Sprintf(`{"client_id":"w","user_id":"u","message":"m","progress_callback_url":%q,"progress_mode":"complete"}`, hooks.URL))
			<-box.last
			box.lines()
			if box.token != ", " {
				t.Errorf("the token was sent: %q", box.token)
			}
		})
	}
}

// TestCallbackBySentences checks that only complete sentences are sent, wherever the
// model's chunks end.
func TestCallbackBySentences(t *testing.T) {
	t.Parallel()
	box := &webhooks{last: make(chan struct{})}
	hooks := httptest.NewServer(box)
	t.Cleanup(hooks.Close)
	p := open(t, func(_ context.Context, _ agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		for _, piece := range []string{"It is 3", ".5. Is", " that all? (Yes.) ", "Good"} {
			emit(agent.Text{Text: piece})
		}
		return agent.Reply{Responses: []string{"It is 3.5. Is that all? (Yes.) Good"}}, nil
	}, chatapi.Options{})
	p.ask(t, "POST", "/api/v1/chat/callback", fmt.Sprintf(`{"client_id":"w","user_id":"u","message":"m","progress_callback_url":%q,"progress_mode":"sentence"}`, hooks.URL))
	<-box.last
	want := []string{"progress It is 3.5.", "progress Is that all? (Yes.)", "complete It is 3.5. Is that all? (Yes.) Good"}
	if got := box.lines(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCallbackAfterARestart checks that a callback is sent after a restart of the process.
func TestCallbackAfterARestart(t *testing.T) {
	t.Parallel()
	url := dbtest.Fresh(t)
	box := &webhooks{last: make(chan struct{})}
	hooks := httptest.NewServer(box)
	t.Cleanup(hooks.Close)
	t.Run("before", func(t *testing.T) {
		p := openAt(t, url, func(ctx context.Context, _ agent.Request, _ func(agent.Event)) (agent.Reply, error) {
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		}, chatapi.Options{})
		p.ask(t, "POST", "/api/v1/chat/callback", fmt.Sprintf(`{"client_id":"w","user_id":"u","message":"m","progress_callback_url":%q,"progress_mode":"complete"}`, hooks.URL))
	})
	openAt(t, url, assistant, chatapi.Options{})
	<-box.last
	if got := box.lines(); len(got) != 1 || !strings.HasPrefix(got[0], "complete") {
		t.Errorf("got %q", got)
	}
}

// TestCallbackOnce checks that an answer is delivered once, however often its message is sent,
// that a receiver which keeps progress waiting gets it, and who sees its tries.
func TestCallbackOnce(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	outcomes := make(chan string, 10)
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var hook chatapi.Webhook
		_ = json.NewDecoder(r.Body).Decode(&hook)
		if hook.Type == "complete" {
			outcomes <- r.Header.Get("Webhook-Id")
			return
		}
		select {
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(hooks.Close)
	var p fixture
	t.Cleanup(func() { // when the handler is closed, which was opened later
		if logs := p.logs.String(); strings.Count(logs, `"event":"request_complete"`) != 2 {
			t.Errorf("the ends of two messages are not logged once each:\n%s", logs)
		}
	})
	p = open(t, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		emit(agent.Status{Message: "working"})
		select {
		case <-released:
		case <-ctx.Done():
		}
		return assistant(ctx, r, emit)
	}, chatapi.Options{})
	message := fmt.Sprintf(`{"client_id":"w","user_id":"u","message":"m","message_key":"k","progress_callback_url":%q}`, hooks.URL)
	send := func() (id string) {
		status, body, _ := p.ask(t, "POST", "/api/v1/chat/callback", message)
		var accepted chatapi.Accepted
		if err := json.Unmarshal([]byte(body), &accepted); err != nil || status != 202 {
			t.Fatalf("%d %s", status, body)
		}
		return accepted.MessageID
	}
	id := send()
	send()
	close(released)
	if got := <-outcomes; got != id {
		t.Errorf("the outcome of %s, want %s", got, id)
	}
	clocktest.Await(t, func() bool {
		_, body, _ := p.ask(t, "GET", "/api/v1/chat/"+id+"/callback", "")
		return strings.Contains(body, `"state":"delivered"`) && strings.Contains(body, `"status":200`)
	}, func() string { return "not delivered" })
	send()
	if status, body, _ := p.ask(t, "POST", "/api/v1/chat/"+id+"/callback", ""); status != 404 {
		t.Errorf("again: %d %s", status, body)
	}
	if _, body, _ := p.ask(t, "GET", "/api/v1/admin/orgs/default/callbacks?state=delivered", ""); strings.Count(body, id) != 1 {
		t.Errorf("the list: %s", body)
	}
	if len(outcomes) > 0 {
		t.Errorf("delivered again: %s", <-outcomes)
	}
	plain := strings.Replace(message, `"k"`, `"plain"`, 1)
	p.ask(t, "POST", "/api/v1/chat", plain)
	for _, other := range []string{plain, strings.Replace(message, hooks.URL, hooks.URL+"/other", 1)} {
		if status, body, _ := p.ask(t, "POST", "/api/v1/chat/callback", other); status != 409 || !strings.Contains(body, "GET /api/v1/chat/msg_") {
			t.Errorf("sent before with another callback, or none: %d %s", status, body)
		}
	}
}

// TestLogs checks that request_id and timestamp are on all log lines of a request, each once, and
// that they contain no message text.
func TestLogs(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	p.ask(t, "POST", "/api/v1/chat", say("my secret diary"))
	p.ask(t, "POST", "/api/v1/chat", say("our mistake"))
	ids := map[string]bool{}
	var names []string
	for line := range strings.SplitSeq(strings.TrimSpace(p.logs.String()), "\n") {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		ids[fmt.Sprint(record["request_id"])] = true
		names = append(names, fmt.Sprint(record["event"]))
		if at, ok := record["timestamp"].(float64); !ok || at < 1e12 {
			t.Errorf("no timestamp in milliseconds: %s", line)
		}
		if stack, _ := record["stack"].(string); record["event"] == "request_error" && (record["error"] != "oops" || !strings.Contains(stack, "goroutine")) {
			t.Errorf("the error: %s", line)
		}
	}
	if len(ids) != 2 || fmt.Sprint(names) != "[request_received do_routed request_complete request_received do_routed request_error]" {
		t.Errorf("%v %v", ids, names)
	}
	if strings.Contains(p.logs.String(), "diary") || strings.Contains(p.logs.String(), "Let me look") {
		t.Errorf("the log contains text of the conversation: %s", p.logs)
	}
}

// recordChan is a log that sends its records to a channel.
type recordChan chan string

func (t recordChan) Write(p []byte) (int, error) {
	t <- string(p)
	return len(p), nil
}

// TestLogsOfDisconnectedClients checks that the last log line is written even if the client
// has disconnected.
func TestLogsOfDisconnectedClients(t *testing.T) {
	t.Parallel()
	records := make(recordChan, 100)
	asked, leave := make(chan struct{}), make(chan struct{})
	p := open(t, func(context.Context, agent.Request, func(agent.Event)) (agent.Reply, error) {
		close(asked)
		<-leave
		return agent.Reply{Iterations: 1}, nil
	}, chatapi.Options{Log: slog.New(slog.NewJSONHandler(records, nil))})
	ctx, disconnect := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/api/v1/chat/stream", strings.NewReader(say("hi")))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	disconnect()
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	close(leave)
	for record := range records {
		if strings.Contains(record, `"event":"request_complete"`) {
			return
		}
	}
}

func FuzzRequests(f *testing.F) {
	for _, body := range []string{say("hi"), "{}", `{"user_id":"u","client_id":"c","message":"m","org":"\u0000"}`, `[1]`, `{"message":1e999}`, "null"} {
		for i := range 4 {
			f.Add(i, body)
		}
	}
	database, err := db.Open(f.Context(), "sqlite:"+filepath.Join(f.TempDir(), "chat.db"), db.Options{})
	if err != nil {
		f.Fatal(err)
	}
	service, err := turn.Open(f.Context(), database, script(assistant), turn.Options{})
	if err != nil {
		f.Fatal(err)
	}
	deliveries, err := delivery.Open(f.Context(), database, delivery.Options{})
	if err != nil {
		f.Fatal(err)
	}
	handler := chatapi.New(service, chatapi.Options{Deliveries: deliveries})
	f.Cleanup(func() {
		service.Close()
		handler.Close()
		_ = database.Close()
	})
	mux := principal.Unguarded(handler.Routes())
	paths := []string{"POST /api/v1/chat", "PUT /api/v1/orgs/o/users/u/preferences", "PUT /api/v1/admin/orgs/o/mcp-servers", "PUT /api/v1/admin/orgs/o/prompt-overrides"}
	f.Fuzz(func(t *testing.T, which int, body string) {
		method, path, _ := strings.Cut(paths[max(which, -which)%len(paths)&3], " ")
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code >= 500 && !strings.Contains(body, "model") && !strings.Contains(body, "mistake") {
			t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
		}
	})
}

// BenchmarkFirstWord measures what this handler adds to the time until a client sees the
// first word of an answer: from the agent's word to the client's line.
func BenchmarkFirstWord(b *testing.B) {
	database, err := db.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "chat.db"), db.Options{})
	if err != nil {
		b.Fatal(err)
	}
	said := make(chan time.Time, 1)
	service, err := turn.Open(b.Context(), database, script(func(_ context.Context, _ agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		said <- time.Now()
		emit(agent.Text{Text: "word"})
		return agent.Reply{Responses: []string{"word"}}, nil
	}), turn.Options{})
	if err != nil {
		b.Fatal(err)
	}
	handler := chatapi.New(service, chatapi.Options{Rate: 1 << 30})
	server := httptest.NewServer(principal.Unguarded(handler.Routes()))
	b.Cleanup(func() {
		server.Close()
		service.Close()
		handler.Close()
		_ = database.Close()
	})
	var took []time.Duration
	for b.Loop() {
		r, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/api/v1/chat/stream", strings.NewReader(say("hi")))
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), `"progress"`) {
		}
		took = append(took, time.Since(<-said))
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
