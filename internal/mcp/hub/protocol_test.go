package hub_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// TestProtocol plays the conversations in testdata/protocol: what a client sends
// over HTTP and what the server must answer. A section "POST /mcp" holds a request,
// headers first; the section after it, named by the status, holds what must come
// back: headers that must be there, then the body. A body of JSON is compared as
// JSON, where "*" matches anything and "…" at the end of an object's keys allows
// more of them; a stream is written as one message per line. $NAME stands for
// what an earlier answer gave: $SESSION for its session id, $STATE for its
// requestState, $CURSOR for its nextCursor.
func TestProtocol(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/protocol/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			play(t, file)
		})
	}
}

func protocolTools() tools { // made anew for each test
	return tools{
		"ask":  asks(askName),
		"echo": echo,
		"fail": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, fault.New(fault.Unavailable, "upstream is not connected").WithHint("try again later")
		},
		"invalid": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, fault.New(fault.InvalidParams, "argument x must be a number")
		},
		"refuse": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, fault.Wrap(fault.Upstream, &wire.Error{Code: 42, Message: "theirs", Data: json.RawMessage(`{"big":9007199254740993}`)}, "call")
		},
		"panic": func(context.Context, tool.Call) (tool.Result, error) { panic("our mistake") },
		"report": func(_ context.Context, call tool.Call) (tool.Result, error) {
			if call.Caller.Progress != nil {
				call.Caller.Progress(tool.Progress{Progress: 0.5, Total: 1, Message: "half"})
				call.Caller.Progress(tool.Progress{Progress: 0.25, Total: 1, Message: "backwards"})
				call.Caller.Progress(tool.Progress{Progress: 1, Total: 1})
			}
			if call.Caller.Log != nil {
				call.Caller.Log(tool.Log{Level: "debug", Data: json.RawMessage(`"not wanted"`)})
				call.Caller.Log(tool.Log{Level: "warning", Logger: "l", Data: json.RawMessage(`{"a":1}`)})
			}
			return textResult("done"), nil
		},
	}
}

// step is one request and what must come back.
type step struct{ request, answer txtar.File }

func play(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opts := options(t, protocolTools())
	opts.Limits = hub.Limits{Page: 2, Body: 4096}
	opts.Upstreams = upstreams{"up": echoPeer{}}
	_, url := serve(t, opts)
	vars := strings.NewReplacer() // replaces nothing yet
	known := map[string]string{}
	for pair := range slices.Chunk(archive.Files, 2) {
		if len(pair) != 2 {
			t.Fatalf("section %q has no answer", pair[0].Name)
		}
		s := step{pair[0], pair[1]}
		status, header, body := s.send(t, url, vars)
		s.check(t, vars, status, header, body)
		learn(known, header, body)
		var list []string
		for name, value := range known {
			list = append(list, name, value)
		}
		vars = strings.NewReplacer(list...)
	}
}

func (s step) send(t *testing.T, url string, vars *strings.Replacer) (int, http.Header, []byte) {
	t.Helper()
	method, path, _ := strings.Cut(s.request.Name, " ")
	headers, body := split(vars.Replace(string(s.request.Data)))
	r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(strings.TrimSpace(body)))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, got
}

func (s step) check(t *testing.T, vars *strings.Replacer, status int, header http.Header, body []byte) {
	t.Helper()
	about := s.request.Name + "\n" + string(s.request.Data)
	if want, _ := strconv.Atoi(s.answer.Name); status != want {
		t.Errorf("%sstatus %d, want %d: %s", about, status, want, body)
	}
	headers, want := split(vars.Replace(string(s.answer.Data)))
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if got := header.Get(name); got != value && (value != "*" || got == "") {
			t.Errorf("%sheader %s: %q, want %q", about, name, got, value)
		}
	}
	var gotLines []string
	if header.Get("Content-Type") == wire.ContentEvent {
		gotLines = messagesOf(t, body)
	} else if len(bytes.TrimSpace(body)) > 0 {
		gotLines = []string{string(body)}
	}
	wantLines := slices.DeleteFunc(strings.Split(want, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%sgot %d messages, want %d:\n%s", about, len(gotLines), len(wantLines), strings.Join(gotLines, "\n"))
	}
	for i := range wantLines {
		if !alike(t, wantLines[i], gotLines[i]) {
			t.Errorf("%sgot  %s\nwant %s", about, gotLines[i], wantLines[i])
		}
	}
}

// split parts the headers of a section from its body.
func split(text string) (headers []string, body string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !regexp.MustCompile(`^[A-Za-z-]+: `).MatchString(line) {
			return lines[:i], strings.Join(lines[i:], "\n")
		}
	}
	return lines, ""
}

func messagesOf(t *testing.T, stream []byte) (lines []string) {
	t.Helper()
	in := sse.NewReader(bytes.NewReader(stream), 0)
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, cmp.Or(string(e.Data), "(prime)"))
	}
}

func alike(t *testing.T, want, got string) bool {
	t.Helper()
	if want == got {
		return true
	}
	var w, g any
	if err := decode(want, &w); err != nil {
		t.Fatalf("want %s: %v", want, err)
	}
	if decode(got, &g) != nil {
		return false
	}
	return matches(w, g)
}

func decode(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

func matches(want, got any) bool {
	switch w := want.(type) {
	case string:
		if w == "*" {
			return true
		}
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, matches)
	case map[string]any:
		g, ok := got.(map[string]any)
		_, more := w["…"]
		for key, value := range w {
			if other, there := g[key]; key != "…" && (!there || !matches(value, other)) {
				return false
			}
		}
		return ok && (more || len(w) == len(g))
	}
	return reflect.DeepEqual(want, got)
}

// learn notes what later requests refer to.
func learn(known map[string]string, header http.Header, body []byte) {
	if id := header.Get(wire.HeaderSession); id != "" {
		known["$SESSION"] = id
	}
	var message struct {
		Result struct{ RequestState, NextCursor string }
	}
	if json.Unmarshal(body, &message) == nil {
		if state := message.Result.RequestState; state != "" {
			known["$STATE"] = state
		}
		if cursor := message.Result.NextCursor; cursor != "" {
			known["$CURSOR"] = cursor
		}
	}
}
