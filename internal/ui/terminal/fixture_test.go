package terminal_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/ui/terminal"
	"github.com/luanette/luanette/internal/ui/terminal/terminaltest"
)

// noon is the start of time in these tests.
var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// fakeServer is a server with prepared responses and events.
type fakeServer struct {
	t      *testing.T
	server *httptest.Server
	key    string

	mu      sync.Mutex
	answers map[string]any   // by tool or path
	called  []string         // tools with their arguments
	events  []map[string]any // all events
	more    chan struct{}    // closed when events changed
	cut     chan struct{}    // closed to disconnect readers
	down    bool
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, more: make(chan struct{}), cut: make(chan struct{}), answers: map[string]any{
		"/api/v1/upstreams": map[string]any{"upstreams": []any{
			map[string]any{"namespace": "files", "endpoint": "http://files.example/mcp", "state": "connected", "tool_count": 12, "call_count": 340, "error_count": 2, "p50_ms": 3.25, "p99_ms": 80, "last_tool": "read_file"},
			map[string]any{"namespace": "search", "endpoint": "http://search.example/mcp", "state": "reconnecting", "tool_count": 4, "stale": true, "error": "connection refused", "attempt": 3, "next_try_ms": 8000},
			map[string]any{"namespace": "db", "endpoint": "db-server --stdio", "state": "asleep", "tool_count": 7},
		}},
		"job_list": map[string]any{"jobs": []any{
			map[string]any{"job_id": "job-2", "name": "nightly", "status": "running", "started_at": noon.Unix() - 90, "progress": 0.42, "message": "page 42 of 100"},
			map[string]any{"job_id": "job-1", "name": "import", "status": "failed", "started_at": noon.Unix() - 200, "completed_at": noon.Unix() - 195, "error": map[string]any{"code": "timeout", "message": "no answer within 5 s", "hint": "raise the limit"}},
		}},
		"approval_list": map[string]any{"approvals": []any{
			map[string]any{"approval_id": "a0", "status": "denied", "subject": "db.drop", "script": "script", "complete": true, "created_at": noon.Add(-time.Hour), "decided_by": "ada", "plan": []any{map[string]any{"number": 1, "action": "call db.drop"}}},
			map[string]any{"approval_id": "a1", "status": "pending", "subject": "files.write_file", "script": "script", "job_id": "job-2", "plan_digest": "p1", "created_at": noon, "expires_at": noon.Add(24 * time.Hour), "plan": []any{
				map[string]any{"number": 1, "action": "call files.write_file", "arguments": map[string]any{"path": "a.txt"}, "diff": "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\n"},
				map[string]any{"number": 2, "effect": "mcp.call", "uncertain": true},
			}},
		}},
		"search_tools": map[string]any{"total": 3, "tools": []any{
			map[string]any{"name": "files.read_file", "signature": "(path: string)", "description": "Reads a file.", "read_only": true},
			map[string]any{"name": "files.write_file", "signature": "(path: string, text: string)", "description": "Writes a file."},
			map[string]any{"name": "search.query", "description": "Finds pages.", "stale": true},
		}},
		"get_tool_definitions": map[string]any{"tools": []any{
			map[string]any{"name": "files.read_file", "description": "Reads a file.\nAll of it.", "lua_path": "mcp.files.read_file", "input_schema": map[string]any{"type": "object"}},
		}},
		"/api/v1/calls": map[string]any{
			"servers": map[string]any{"files": map[string]any{"points": []any{
				map[string]any{"calls": 1}, map[string]any{"calls": 0}, map[string]any{"calls": 4}, map[string]any{"calls": 8},
			}}},
			"tools": []any{map[string]any{"name": "files.read_file", "calls": 13, "errors": 2}},
		},
		"/api/v1/traces": map[string]any{"traces": []any{
			map[string]any{"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "name": "tools/call call_tool", "start": noon, "duration_ns": 3_200_000, "span_count": 3, "tools": []any{"files.read_file"}},
			map[string]any{"trace_id": "00f067aa0ba902b7a3ce929d0e0e4736", "name": "tools/call lua_eval", "start": noon, "duration_ns": 1_200_000_000, "failed": true, "span_count": 4, "tools": []any{"search.query"}},
			map[string]any{"trace_id": "11f067aa0ba902b7a3ce929d0e0e4736", "name": "tools/list", "start": noon, "duration_ns": 90_000, "span_count": 1},
		}},
		"/api/v1/traces/4bf92f3577b34da6a3ce929d0e0e4736": map[string]any{
			"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "name": "tools/call call_tool", "start": noon, "duration_ns": 3_200_000, "span_count": 4, "tools": []any{"files.read_file"}, "spans": []any{
				map[string]any{"span_id": "1", "name": "tools/call call_tool", "start": noon, "duration_ns": 3_200_000},
				map[string]any{"span_id": "2", "parent_id": "1", "name": "luanette.mcp.files.read_file", "start": noon.Add(400 * time.Microsecond), "duration_ns": 2_400_000, "attributes": map[string]any{"mcp.tool": "read_file"}},
				map[string]any{"span_id": "3", "parent_id": "2", "name": "tools/call read_file", "start": noon.Add(800 * time.Microsecond), "duration_ns": 1_600_000, "failed": true, "error": "no such file"},
			},
		},
		"/api/v1/activity": map[string]any{"sessions": []any{
			map[string]any{"id": "session:5f", "who": "k1", "name": "laptop", "agent": "claude-code 2.1.4", "title": "a note about milk", "latest": noon, "calls": 2, "failed": 1, "asked": 1},
			map[string]any{"id": "job:job-1", "who": "k1", "name": "laptop", "title": "import", "latest": noon.Add(-time.Hour), "calls": 1},
		}},
		"/api/v1/activity/session:5f": map[string]any{
			"session": map[string]any{"id": "session:5f", "title": "a note about milk"}, "steps": []any{
				map[string]any{"id": "s1", "at": noon.Add(-time.Minute), "tool": "search_tools", "args": map[string]any{"query": "a note about milk"}, "took_us": 4000, "result": map[string]any{"tools": []any{}}},
				map[string]any{"id": "s2", "at": noon.Add(-30 * time.Second), "tool": "execute_code", "args": map[string]any{"code": "return 1"}, "took_us": 72_000_000, "waited_us": 70_000_000, "trace": "4bf92f3577b34da6a3ce929d0e0e4736"},
				map[string]any{"id": "s3", "parent": "s2", "at": noon.Add(-20 * time.Second), "tool": "files.read_file", "args": map[string]any{"path": "milk.txt"}, "error": "upstream", "message": "no such file", "took_us": 2000, "job": "job-1"},
				map[string]any{"id": "s4", "at": noon, "tool": "files.write_file", "decision": "ask", "approval": "a1", "args": map[string]any{"path": "a.txt"}, "took_us": 90},
			}},
		"job_undo": map[string]any{"status": "waiting", "approval_id": "u1", "steps": []any{
			map[string]any{"step": 2, "change": "files.write_file{path = \"a.txt\"}", "tool": "files.write_file"},
			map[string]any{"step": 1, "change": "mail.send{}", "problem": "nothing undoes it"},
		}},
		"/health": map[string]any{"status": "healthy"},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/events", s.stream)
	mux.HandleFunc("POST /mcp", s.call)
	mux.HandleFunc("GET /", s.get)
	mux.HandleFunc("POST /api/", s.post)
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		down := s.down
		s.mu.Unlock()
		switch {
		case down:
			panic(http.ErrAbortHandler)
		case s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key:
			http.Error(w, `{"message":"no"}`, http.StatusUnauthorized)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		s.disconnect(false)
		s.server.Close()
	})
	return s
}

func (s *fakeServer) call(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.called = append(s.called, request.Params.Name+" "+string(request.Params.Arguments))
	answer, known := s.answers[request.Params.Name]
	s.mu.Unlock()
	if with, ok := answer.(func(args string) any); ok {
		answer = with(string(request.Params.Arguments))
	}
	result := map[string]any{"structuredContent": answer}
	if text, failed := answer.(error); failed || !known {
		result = map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": fmt.Sprint(text)}}}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "result": result})
	fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: %s\n\n", raw)
}

// get returns the answer of a path, if there is one.
func (s *fakeServer) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, known := s.answers[r.URL.RequestURI()]
	if !known {
		answer, known = s.answers[r.URL.Path]
	}
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// post records a request.
func (s *fakeServer) post(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.called = append(s.called, strings.TrimSpace(r.URL.Path+" "+string(body)))
	s.mu.Unlock()
	_, _ = w.Write([]byte(`{}`))
}

func (s *fakeServer) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	sent := 0
	if after := r.URL.Query().Get("after"); after != "all" {
		_, _ = fmt.Sscan(after, &sent)
	}
	for {
		s.mu.Lock()
		events, more, cut := s.events, s.more, s.cut
		s.mu.Unlock()
		for ; sent < len(events); sent++ {
			raw, _ := json.Marshal(events[sent])
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", sent+1, raw)
		}
		if r.URL.Query().Get("follow") == "false" {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// publish adds an event.
func (s *fakeServer) publish(kind string, data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, map[string]any{"seq": len(s.events) + 1, "time": noon.Add(time.Duration(len(s.events)) * time.Second), "type": kind, "data": data})
	close(s.more)
	s.more = make(chan struct{})
}

func (s *fakeServer) answer(name string, with any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name] = with
}

// disconnect ends all streams, and refuses new ones if down is set.
func (s *fakeServer) disconnect(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *fakeServer) wasCalled(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.called {
		if c == what {
			return true
		}
	}
	return false
}

// user reads a virtual terminal and types.
type user struct {
	t      *testing.T
	screen *terminaltest.Screen
	line   *os.File // the terminal's end of the pty
	tty    *os.File // the program's end
	ended  chan error
}

// keyboard hides the terminal's name. A terminal with a name is read through an epoll
// that Bubble Tea closes while it is waited on; with several terminals in one process
// one then receives the keys of another.
type keyboard struct{ tty *os.File }

func (k keyboard) Read(b []byte) (int, error)  { return k.tty.Read(b) }
func (k keyboard) Write(b []byte) (int, error) { return k.tty.Write(b) }
func (k keyboard) Close() error                { return k.tty.Close() }
func (k keyboard) Fd() uintptr                 { return k.tty.Fd() }

// openTerminal opens both ends of a pty. Our end does not block, so that closing it
// ends its reader.
func openTerminal() (line, tty *os.File, err error) {
	blocking, tty, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := syscall.Dup(int(blocking.Fd()))
	if err != nil {
		return nil, nil, err
	}
	err = syscall.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "line"), tty, err
}

// open starts the dashboard on a terminal of a size, and shows the overview.
func (s *fakeServer) open(width, height int) *user {
	s.t.Helper()
	p := s.start(width, height)
	p.types("0")
	return p
}

// start starts the dashboard on a terminal of a size.
func (s *fakeServer) start(width, height int) *user {
	s.t.Helper()
	line, tty, err := openTerminal()
	if err != nil {
		s.t.Fatalf("open a terminal: %v", err)
	}
	p := &user{s.t, terminaltest.New(width, height), line, tty, make(chan error, 1)}
	p.resize(width, height)
	drawn := make(chan struct{})
	go func() { // ends when the pty is closed
		defer close(drawn)
		_, _ = io.Copy(p.screen, line)
	}()
	go func() {
		p.ended <- terminal.Run(s.t.Context(), terminal.Options{
			Server: s.server.URL, Key: secret.New(s.key), Version: "test", Input: keyboard{tty}, Output: tty,
			Env: []string{"TERM=xterm-256color"}, Now: func() time.Time { return noon.Add(time.Minute) },
		})
	}()
	s.t.Cleanup(func() {
		_, _ = line.WriteString("\x03")
		if err := <-p.ended; err != nil {
			s.t.Errorf("it ended with %v", err)
		}
		_ = tty.Close()
		_ = line.Close()
		<-drawn
	})
	return p
}

func (p *user) resize(width, height int) {
	p.t.Helper()
	p.screen.Resize(width, height)
	if err := pty.Setsize(p.tty, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *user) types(keys string) {
	p.t.Helper()
	if _, err := p.line.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// text is what is on the screen.
func (p *user) text() string { return p.screen.Text() }

// waitUntil waits until the screen satisfies a condition.
func (p *user) waitUntil(what string, holds func(string) bool) {
	p.t.Helper()
	p.screen.Await(p.t, what, holds)
}

func (p *user) waitFor(text string) {
	p.t.Helper()
	p.waitUntil(text, func(picture string) bool { return strings.Contains(picture, text) })
}

// waitOrder waits until texts are below each other.
func (p *user) waitOrder(texts ...string) {
	p.t.Helper()
	p.waitUntil(strings.Join(texts, " above "), func(picture string) bool {
		for _, text := range texts {
			_, after, found := strings.Cut(picture, text)
			if !found {
				return false
			}
			picture = after
		}
		return true
	})
}

// waitEnd waits until the dashboard has ended.
func (p *user) waitEnd() {
	p.t.Helper()
	err := <-p.ended
	if err != nil {
		p.t.Errorf("it ended with %v", err)
	}
	p.ended <- nil
}

func (p *user) waitGone(text string) {
	p.t.Helper()
	p.waitUntil("no "+text, func(picture string) bool { return !strings.Contains(picture, text) })
}

// golden waits for the screen stored in testdata. UPDATE=1 stores the screen once it
// contains the text and no longer changes.
func (p *user) golden(name, once string) {
	p.t.Helper()
	p.waitFor(once)
	path := filepath.Join("testdata", name+".txt")
	if os.Getenv("UPDATE") != "" {
		same, last := 0, ""
		clocktest.Await(p.t, func() bool {
			if now := p.text(); now != last {
				same, last = 0, now
			}
			same++
			return same > 200
		})
		if err := os.WriteFile(path, []byte(maskPort(p.text())), 0o600); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.waitUntil("the frame "+name+":\n"+string(want), func(picture string) bool { return maskPort(picture) == string(want) })
}

// maskPort replaces the server's port.
func maskPort(picture string) string {
	at := strings.Index(picture, "127.0.0.1:")
	if at < 0 {
		return picture
	}
	at += len("127.0.0.1:")
	end := at
	for end < len(picture) && picture[end] >= '0' && picture[end] <= '9' {
		end++
	}
	return picture[:at] + strings.Repeat("#", end-at) + picture[end:]
}

// withHistory adds events from before the dashboard started.
func (s *fakeServer) withHistory() *fakeServer {
	s.publish("upstream.connecting", map[string]any{"upstream": "files", "target": "http://files.example/mcp"})
	s.publish("upstream.connected", map[string]any{"upstream": "files", "tool_count": 12})
	s.publish("tool.call_started", map[string]any{"call": 1, "namespace": "files", "tool": "read_file", "depth": 1})
	s.publish("tool.call_ended", map[string]any{"call": 1, "namespace": "files", "tool": "read_file", "depth": 1, "duration_ms": 3.2})
	s.publish("tool.call_started", map[string]any{"call": 2, "namespace": "search", "tool": "query", "depth": 1})
	s.publish("tool.call_ended", map[string]any{"call": 2, "namespace": "search", "tool": "query", "depth": 1, "duration_ms": 1200, "error_type": "unavailable", "error": "search is unreachable"})
	s.publish("tool.call_started", map[string]any{"call": 3, "namespace": "files", "tool": "write_file", "depth": 2})
	s.publish("tool.call_started", map[string]any{"call": 4, "namespace": "", "tool": "job_list", "depth": 1})
	s.publish("upstream.reconnecting", map[string]any{"upstream": "search", "attempt": 3, "delay_ms": 8000, "error": "connection refused"})
	s.publish("job.started", map[string]any{"job_id": "job-2", "name": "nightly"})
	s.publish("job.finished", map[string]any{"job_id": "job-1", "name": "import", "status": "failed", "took_ms": 5000, "error": "no answer within 5 s"})
	s.publish("script.published", map[string]any{"name": "greet"})
	s.publish("approval.requested", map[string]any{"approval_id": "a1", "subject": "files.write_file"})
	s.publish("log.line", map[string]any{"level": "WARN", "message": "slow", "facts": map[string]any{"tool": "files.read_file"}})
	return s
}
