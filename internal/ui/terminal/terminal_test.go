package terminal_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/ui/terminal"
)

// frame is a page at a size of the terminal.
type frame struct {
	page string
	keys []string // each is typed when the one before has had its effect
	sees []string // the effect of each key, and at the end what is on the page
}

func TestFrames(t *testing.T) {
	t.Parallel()
	frames := []frame{
		{"overview", nil, []string{"slow tool=files.read_file"}},
		{"servers", []string{"2"}, []string{"live", "─ Servers 3 "}},
		{"server", []string{"2", "i"}, []string{"live", "─ Servers 3 ", "next try"}},
		{"server-tools", []string{"2", "j", "\r"}, []string{"live", "─ Servers 3 ", "›files", "─ Servers › files 2 "}},
		{"tool", []string{":tools files\r", "\r"}, []string{"─ Servers 3 ", "─ Tools › files 2 ", "\"type\": \"object\""}},
		{"tools", []string{"3"}, []string{"live", "─ Tools 3 "}},
		{"approvals", []string{"4"}, []string{"live", "─ Approvals 2 "}},
		{"approval", []string{"4", "\r", "a"}, []string{"live", "─ Approvals 2 ", "depends on a mocked result", "Allow 2 effects"}},
		{"jobs", []string{"5"}, []string{"live", "─ Jobs 2 "}},
		{"calls", []string{"6"}, []string{"live", "─ Calls 3 "}},
		{"traces", []string{"7"}, []string{"live", "─ Traces 2 "}},
		{"trace", []string{"7", "\r"}, []string{"live", "─ Traces 2 ", "no such file"}},
		{"log", []string{"8"}, []string{"live", "─ Log 8 "}},
		{"activity", []string{"1"}, []string{"live", "─ Activity 2 "}},
		{"transcript", []string{"1", "\r"}, []string{"live", "─ Activity 2 ", "no such file"}},
		{"help", []string{"?"}, []string{"live", "Everywhere"}},
	}
	sizes := [][2]int{{60, 20}, {80, 24}, {200, 60}}
	wide := []string{"overview", "servers", "tools", "approval", "trace"} // pages that differ on a wide screen
	for _, f := range frames {
		for _, size := range sizes {
			if size[0] == 200 && !slices.Contains(wide, f.page) {
				continue
			}
			name := fmt.Sprintf("%s-%dx%d", f.page, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newFakeServer(t).withHistory().open(size[0], size[1])
				for i, key := range f.keys {
					p.waitFor(f.sees[i])
					p.types(key)
				}
				p.golden(name, f.sees[len(f.sees)-1])
			})
		}
	}
}

func TestSmallTerminals(t *testing.T) {
	t.Parallel()
	newFakeServer(t).withHistory().open(40, 12).golden("small-40x12", "reconnecting")
	newFakeServer(t).withHistory().open(20, 5).golden("tiny-20x5", "reconnecting")
}

func TestEmptyServer(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	for _, name := range []string{"/api/v1/upstreams", "job_list", "approval_list", "search_tools", "/api/v1/traces"} {
		s.answer(name, map[string]any{})
	}
	p := s.open(80, 24)
	p.golden("empty-80x24", "live")
	for _, empty := range []struct{ key, text string }{
		{"2", "luanette upstream add NAME URL"}, {"3", "connect a server"}, {"4", "nothing to decide"}, {"5", "luanette job start HASH"},
		{"6", "no calls yet"}, {"7", "`:traces all` also lists"}, {"8", "no events yet"}, {"9", "does not share its database"},
	} {
		p.types(empty.key)
		p.waitFor(empty.text)
	}
	p.types("2r")
	p.waitFor("there is no row for r (reconnect)")
}

func TestDetailsOfARunningJob(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("job_status", map[string]any{"job_id": "job-2", "name": "nightly", "status": "running", "started_at": noon.Unix() - 90, "progress": 0.42})
	s.answer("job_logs", map[string]any{"lines": []any{map[string]any{"stream": "stdout", "text": "page 42"}}})
	s.answer("job_journal", map[string]any{"steps": []any{
		map[string]any{"effect": "mcp.has", "call": "mcp.has()", "time": noon.Unix() - 90, "done": true},
		map[string]any{"effect": "mcp.call", "call": "files.read_file({})", "time": noon.Unix() - 60, "done": true},
		map[string]any{"effect": "mcp.call", "call": "search.query({})", "time": noon.Unix() - 50, "done": true, "error": "unreachable"},
		map[string]any{"effect": "mcp.call", "call": "files.write_file({})", "time": noon.Unix() - 50},
	}})
	p := s.open(80, 24)
	p.waitFor("page 42 of 100")
	p.types("5\r")
	p.golden("job-running-80x24", "page 42")
	s.answer("job_status", map[string]any{"job_id": "job-2", "name": "nightly", "status": "complete", "started_at": noon.Unix() - 90, "completed_at": noon.Unix(), "result": map[string]any{"pages": 100}})
	s.publish("job.finished", map[string]any{"job_id": "job-2", "name": "nightly", "status": "complete", "took_ms": 90000})
	p.golden("job-80x24", `"pages": 100`)
	p.types("l")
	p.waitFor("─ Jobs › nightly › output of nightly ─")
	s.answer("job_logs", map[string]any{"lines": []any{map[string]any{"stream": "stdout", "text": "page 43"}}})
	s.publish("job.finished", map[string]any{"job_id": "job-2"})
	p.waitFor("page 43")
}

func TestProgressNeedsNoReload(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t) // without events that load the jobs again
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
	p.waitFor("─ Log 8 ")
	p.types(" ")
	p.waitFor("paused")
	s.publish("upstream.removed", map[string]any{"upstream": "files"})
	s.publish("job.progress", map[string]any{"job_id": "job-2", "fraction": 0.9})
	p.types(" ")
	p.waitFor("files: removed")
	p.waitFor("─ Log 9 ")
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
	p.waitFor("─ Log 9 ") // earlier events were not added twice
}

func TestHostileStrings(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	evil := "a\x1b]0;owned\x07b\x1b[2Jc\u009b31md\ne\u202ef\x00g"
	s.answer("/api/v1/upstreams", map[string]any{"upstreams": []any{map[string]any{"namespace": evil, "endpoint": evil, "state": "connected", "last_tool": evil}}})
	s.answer("job_list", map[string]any{"jobs": []any{map[string]any{"job_id": "1", "name": evil, "status": "running", "message": evil}}})
	s.answer("job_status", map[string]any{"job_id": "1", "status": "failed", "error": map[string]any{"message": evil}, "result": evil})
	s.answer("job_logs", map[string]any{"lines": []any{map[string]any{"stream": "stdout", "text": evil}}})
	s.answer("job_journal", map[string]any{"steps": []any{map[string]any{"call": evil, "error": evil, "done": true}}})
	s.answer("tools_refresh", fault.New(fault.Upstream, "%s", evil))
	s.publish("tool.call_started", map[string]any{"call": 1, "namespace": evil, "tool": evil, "depth": 1})
	s.publish("log.line", map[string]any{"level": evil, "message": evil, "facts": map[string]any{evil: evil}})
	s.publish(evil, map[string]any{evil: evil})
	p := s.open(80, 24)
	p.golden("hostile-80x24", "─ Log 2 ")
	p.types("r")
	p.waitFor("\na�]0;owned�b�[2Jc�31md ef�g\n")
	p.types("5\r")
	for _, want := range []string{"error", "Result", "Output"} {
		p.waitFor(want)
	}
	if title := p.screen.Title(); title != "luanette hud" && title != "" {
		t.Errorf("the window's title became %q", title)
	}
}

// TestWideText opens every page with text that is wide, combines, or runs from right to
// left. Header and footer must stay in their rows.
func TestWideText(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	odd := strings.Repeat("日本語", 40) + "e" + strings.Repeat("\u0301", 200) + "❤\ufe0f👩\u200d👩\u200d👧 \u202eשלום\u2066مرحبا"
	s.answer("/api/v1/upstreams", map[string]any{"upstreams": []any{map[string]any{"namespace": odd, "endpoint": odd, "state": "failed", "error": odd, "hint": odd}}})
	s.answer("job_list", map[string]any{"jobs": []any{map[string]any{"job_id": "1", "name": odd, "status": odd, "message": odd}}})
	s.answer("approval_list", map[string]any{"approvals": []any{map[string]any{"approval_id": "1", "status": "pending", "subject": odd, "plan": []any{map[string]any{"action": odd, "arguments": map[string]any{odd: odd}, "diff": odd}}}}})
	s.answer("search_tools", map[string]any{"total": 1, "tools": []any{map[string]any{"name": odd, "description": odd, "signature": odd}}})
	s.answer("get_tool_definitions", map[string]any{"tools": []any{map[string]any{"name": odd, "description": odd, "input_schema": odd}}})
	s.answer("/api/v1/traces", map[string]any{"traces": []any{map[string]any{"trace_id": "1", "name": odd, "tools": []any{odd}}}})
	s.answer("/api/v1/traces/1", map[string]any{"trace_id": "1", "name": odd, "spans": []any{map[string]any{"span_id": "1", "name": odd, "failed": true, "error": odd, "attributes": map[string]any{odd: odd}}}})
	s.publish("upstream.stderr", map[string]any{"upstream": odd, "line": odd})
	s.publish("tool.call_started", map[string]any{"call": 1, "namespace": odd, "tool": odd, "depth": 1})
	p := s.open(60, 20)
	p.waitFor("1 pending approval")
	framed := func(picture string) bool {
		rows := strings.Split(picture, "\n")
		return len(rows) == 21 && strings.HasPrefix(rows[0], "Luanette  127") && strings.HasPrefix(rows[1], " 0 ") && strings.HasPrefix(rows[2], "─ ") && strings.HasPrefix(rows[19], "? help")
	}
	for _, tt := range []struct{ keys, sees string }{
		{"0", "─ Servers 1 "}, {"2", "─ Servers 1 "}, {"\r", "─ Servers › 日"}, {"3", "─ Tools 1 "}, {"\r", "─ Tools › 日"}, {"4", "─ Approvals 1 "}, {"\r", "─ Approvals › 日"},
		{"5", "─ Jobs 1 "}, {"6", "─ Calls 1 "}, {"\r", "─ Calls › 日"}, {"7", "─ Traces 1 "}, {"\r", "─ Traces › trace 1"}, {"2", "─ Servers 1 "}, {"l", "─ Servers › stderr of 日"},
	} {
		p.types(tt.keys)
		p.waitUntil(tt.sees+" in its frame", func(picture string) bool { return strings.Contains(picture, tt.sees) && framed(picture) })
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
	p.types("8/event 499\r")
	p.waitFor("─ Log 10 /event 499 ") // 4990 to 4999; 499 is no longer stored
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
