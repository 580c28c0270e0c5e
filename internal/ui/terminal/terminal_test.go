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
	"github.com/hinshun/vt10x"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/ui/terminal"
)

// noon is the start of time in these tests.
var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// fakeServer is a server with prepared responses and events.
type fakeServer struct {
	t      *testing.T
	server *httptest.Server
	key    string

	mu      sync.Mutex
	answers map[string]any   // by tool
	called  []string         // tools with their arguments
	events  []map[string]any // all events
	more    chan struct{}    // closed when events changed
	cut     chan struct{}    // closed to disconnect readers
	down    bool
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, more: make(chan struct{}), cut: make(chan struct{}), answers: map[string]any{
		"mcp_list_upstreams": map[string]any{"upstreams": []any{
			map[string]any{"namespace": "files", "endpoint": "http://files.example/mcp", "state": "connected", "tool_count": 12, "call_count": 340, "error_count": 2, "p50_ms": 3.25, "p99_ms": 80, "last_tool": "read_file"},
			map[string]any{"namespace": "search", "endpoint": "http://search.example/mcp", "state": "reconnecting", "tool_count": 4, "stale": true, "error": "connection refused", "attempt": 3, "next_try_ms": 8000},
			map[string]any{"namespace": "db", "endpoint": "db-server --stdio", "state": "asleep", "tool_count": 7},
		}},
		"job_list": map[string]any{"jobs": []any{
			map[string]any{"job_id": "job-2", "name": "nightly", "status": "running", "started_at": noon.Unix() - 90, "progress": 0.42, "message": "page 42 of 100"},
			map[string]any{"job_id": "job-1", "name": "import", "status": "failed", "started_at": noon.Unix() - 200, "completed_at": noon.Unix() - 195, "error": map[string]any{"code": "timeout", "message": "no answer within 5 s", "hint": "raise the limit"}},
		}},
		"approval_list": map[string]any{"approvals": []any{map[string]any{"approval_id": "a1"}}},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/events", s.stream)
	mux.HandleFunc("POST /mcp", s.call)
	mux.HandleFunc("GET /api/v1/nodes", s.nodes)
	mux.HandleFunc("POST /api/v1/upstreams/{name}/restore", s.restore)
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
	result := map[string]any{"structuredContent": answer}
	if text, failed := answer.(error); failed || !known {
		result = map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": fmt.Sprint(text)}}}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "result": result})
	fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: %s\n\n", raw)
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
	screen vt10x.Terminal
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

// open starts the dashboard on a terminal of a size.
func (s *fakeServer) open(width, height int) *user {
	s.t.Helper()
	line, tty, err := openTerminal()
	if err != nil {
		s.t.Fatalf("open a terminal: %v", err)
	}
	p := &user{s.t, vt10x.New(vt10x.WithSize(width, height)), line, tty, make(chan error, 1)}
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
func (p *user) text() string {
	var rows []string
	for row := range strings.SplitSeq(strings.TrimRight(p.screen.String(), "\n"), "\n") {
		rows = append(rows, strings.TrimRight(row, " "))
	}
	return strings.Join(rows, "\n") + "\n"
}

// waitUntil waits until the screen satisfies a condition.
func (p *user) waitUntil(what string, holds func(string) bool) {
	p.t.Helper()
	clocktest.Await(p.t, func() bool { return holds(p.text()) }, func() string { return what + " is not on the screen:\n" + p.text() })
}

func (p *user) waitFor(text string) {
	p.t.Helper()
	p.waitUntil(text, func(picture string) bool { return strings.Contains(picture, text) })
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

func TestFrames(t *testing.T) {
	t.Parallel()
	sizes := []struct {
		name          string
		width, height int
		once          string
	}{
		{"stack-80x24", 80, 24, "slow tool=files.read_file"},
		{"grid-160x40", 160, 40, "slow tool=files.read_file"},
		{"narrow-40x12", 40, 12, "reconnecting"},
		{"tiny-20x4", 20, 4, "files"},
	}
	for _, tt := range sizes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			newFakeServer(t).withHistory().open(tt.width, tt.height).golden(tt.name, tt.once)
		})
	}
}

func TestEmptyServer(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	for _, name := range []string{"mcp_list_upstreams", "job_list", "approval_list"} {
		s.answer(name, map[string]any{})
	}
	s.open(80, 24).golden("empty-80x24", "live")
}

func TestPanes(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(40, 12)
	p.waitFor("1 Upstreams 3")
	p.types("\t")
	p.waitFor("2 Jobs 2")
	p.types("4")
	p.waitFor("4 Log 8")
	p.types("\x1b[Z") // shift+tab
	p.golden("calls-40x12", "3 Calls 3")
	p.types("j\r")
	p.waitFor("unavailable")
	p.types("\x1b")
	p.waitFor("3 Calls 3")
	p.types("?")
	p.waitFor("Keys")
	p.types("x")
	p.waitFor("3 Calls 3")
}

func TestFilter(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(80, 24)
	p.waitFor("1 Upstreams 3")
	p.types("/sezz\x7f\x7fa")
	p.golden("filter-80x24", "1 Upstreams 1 /sea")
	p.types("\r")
	p.waitFor("tab pane")
	p.types("/zz")
	p.waitFor("no rows match seazz")
	p.types("\x1b")
	p.waitFor("1 Upstreams 3")
}

func TestDetailsOfAnUpstream(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(80, 24)
	p.waitFor("1 Upstreams 3")
	p.types("j")
	p.types("\r")
	p.golden("upstream-80x24", "Upstream search")
}

func TestDetailsOfARunningJob(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("job_status", map[string]any{"job_id": "job-2", "name": "nightly", "status": "running", "started_at": noon.Unix() - 90, "progress": 0.42})
	s.answer("job_logs", map[string]any{"lines": []any{map[string]any{"stream": "stdout", "text": "page 42"}}})
	p := s.open(80, 24)
	p.waitFor("nightly")
	p.types("2\r")
	p.waitFor("page 42")
	s.answer("job_status", map[string]any{"job_id": "job-2", "name": "nightly", "status": "complete", "started_at": noon.Unix() - 90, "completed_at": noon.Unix(), "result": map[string]any{"pages": 100}})
	s.publish("job.finished", map[string]any{"job_id": "job-2", "name": "nightly", "status": "complete", "took_ms": 90000})
	p.golden("job-80x24", `"pages": 100`)
}

func TestActions(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("tools_refresh", fault.New(fault.Unavailable, "search is unreachable"))
	s.answer("mcp_disconnect", map[string]any{"removed": true})
	s.answer("job_cancel", map[string]any{"cancelled": true})
	p := s.open(80, 24)
	p.waitFor("1 Upstreams 3")
	p.types("j")
	p.waitFor("›search")
	p.types("r")
	p.waitFor("search is unreachable")
	p.types("x")
	p.waitFor("Remove search? y or n")
	p.types("n")
	p.waitFor("not done")
	p.types("x")
	p.waitFor("Remove search?")
	p.types("y")
	p.waitFor("search removed")
	p.types("c")
	p.waitFor("select a job first")
	p.types("2c")
	p.waitFor("Cancel nightly? y or n")
	p.types("y")
	p.waitFor("nightly cancelled")
	p.types("jc")
	p.waitFor("import is already failed")
	for _, want := range []string{`tools_refresh {"namespace":"search"}`, `mcp_disconnect {"namespace":"search"}`, `job_cancel {"job_id":"job-2"}`} {
		if !s.wasCalled(want) {
			t.Errorf("%s was not called", want)
		}
	}
}

func TestProgressNeedsNoReload(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	p := s.open(80, 24)
	p.waitFor("42%")
	s.publish("job.progress", map[string]any{"job_id": "job-2", "fraction": 0.9, "message": "page 90 of 100"})
	p.waitFor("90%")
	p.waitFor("page 90")
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	p := s.open(80, 24)
	p.waitFor("4 Log 8")
	p.types(" ")
	p.waitFor("paused")
	s.publish("upstream.removed", map[string]any{"upstream": "files"})
	s.publish("job.progress", map[string]any{"job_id": "job-2", "fraction": 0.9})
	p.types(" ")
	p.waitFor("files: removed")
	p.waitFor("4 Log 9")
}

func TestReconnect(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	p := s.open(80, 24)
	p.waitFor("live")
	s.disconnect(true)
	p.waitFor("disconnected, next attempt in")
	p.waitGone("live")
	s.publish("upstream.removed", map[string]any{"upstream": "files"}) // while disconnected
	s.disconnect(false)
	p.waitFor("live")
	p.waitFor("files: removed")
	p.waitFor("4 Log 9") // earlier events were not added twice
}

func TestHostileStrings(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	evil := "a\x1b]0;owned\x07b\x1b[2Jc\u009b31md\ne\u202ef\x00g"
	s.answer("mcp_list_upstreams", map[string]any{"upstreams": []any{map[string]any{"namespace": evil, "endpoint": evil, "state": "connected", "last_tool": evil}}})
	s.answer("job_list", map[string]any{"jobs": []any{map[string]any{"job_id": "1", "name": evil, "status": "running", "message": evil}}})
	s.answer("job_status", map[string]any{"job_id": "1", "status": "failed", "error": map[string]any{"message": evil}, "result": evil})
	s.answer("job_logs", map[string]any{"lines": []any{map[string]any{"stream": "stdout", "text": evil}}})
	s.answer("tools_refresh", fault.New(fault.Upstream, "%s", evil))
	s.publish("tool.call_started", map[string]any{"call": 1, "namespace": evil, "tool": evil, "depth": 1})
	s.publish("log.line", map[string]any{"level": evil, "message": evil, "facts": map[string]any{evil: evil}})
	s.publish(evil, map[string]any{evil: evil})
	p := s.open(80, 24)
	p.golden("hostile-80x24", "4 Log 2")
	p.types("r")
	p.waitFor("\na�]0;owned�b�[2Jc�31md ef�g\n")
	p.types("2\r")
	p.waitFor("Output")
	for _, want := range []string{"error", "Result"} {
		p.waitFor(want)
	}
	if title := p.screen.Title(); title != "luanette hud" && title != "" {
		t.Errorf("the window's title became %q", title)
	}
}

func TestManyEvents(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	p := s.open(80, 24)
	p.waitFor("live")
	for i := range 5000 {
		s.publish("log.line", map[string]any{"level": "INFO", "message": fmt.Sprintf("event %d", i)})
	}
	p.waitFor("event 4999")
	p.types("4")
	p.types("/event 499\r")
	p.waitFor("4 Log 10 /event 499") // 4990 to 4999; 499 is no longer stored
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.key = "right"
	err := terminal.Run(t.Context(), terminal.Options{
		Server: s.server.URL, Key: secret.New("wrong"), Input: strings.NewReader(""), Output: io.Discard, Size: [2]int{80, 24},
	})
	if fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("got %v", err)
	}
	s.open(80, 24).waitFor("live") // with the right key
}

func TestOnce(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	o := terminal.Options{Server: s.server.URL, Now: func() time.Time { return noon.Add(time.Minute) }}
	var text, data strings.Builder
	o.Output = &text
	if err := terminal.Once(t.Context(), o, 0, false); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "once.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(maskPort(text.String())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || maskPort(text.String()) != string(want) {
		t.Errorf("%v: got\n%s\nwant\n%s", err, text.String(), want)
	}
	o.Output = &data
	if err := terminal.Once(t.Context(), o, 0, true); err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Upstreams, Jobs, Calls, Log []map[string]any
		Approvals                   int
	}
	if err := json.Unmarshal([]byte(data.String()), &picture); err != nil || len(picture.Upstreams) != 3 || len(picture.Jobs) != 2 || len(picture.Calls) != 3 || len(picture.Log) != 8 || picture.Approvals != 1 {
		t.Errorf("%v: %s", err, data.String())
	}
}

func TestOnceWithoutServer(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.disconnect(true)
	err := terminal.Once(t.Context(), terminal.Options{Server: s.server.URL, Output: io.Discard}, 0, false)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.HintOf(err), "luanette serve") {
		t.Errorf("got %v, hint %q", err, fault.HintOf(err))
	}
	if err := terminal.Once(t.Context(), terminal.Options{Server: "ftp://x", Output: io.Discard}, 0, false); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("got %v", err)
	}
}
