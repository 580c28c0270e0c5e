package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func TestLostConnectionIsResumed(t *testing.T) {
	t.Parallel()
	slow := newHanging()
	_, url := serve(t, options(t, tools{"slow": slow.run}))
	c := &client{t: t, url: url + "/mcp"}
	c.initialize(wire.NewestLegacy)
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan *http.Response)
	go func() { answers <- c.post(ctx, c.call("1", "slow", `,"_meta":{"progressToken":7}`)) }()
	call := <-slow.began
	call.Caller.Progress(tool.Progress{Progress: 1})
	stream := events(t, <-answers)
	first, err := stream.Next()
	if err != nil || len(first.Data) != 0 || first.ID == "" {
		t.Fatalf("the stream begins with %+v, %v, want an event with an id and no data", first, err)
	}
	if m := next(t, stream); m.Method != wire.NoteProgress {
		t.Fatalf("got %s", m.Method)
	}
	last := stream.LastID()
	cancel()
	call.Caller.Progress(tool.Progress{Progress: 2})
	close(slow.release)

	// From the last event on, and from the very first: each gets what it missed.
	for _, from := range []struct {
		id   string
		want int
	}{{last, 2}, {first.ID, 3}} {
		r := c.request(t.Context(), http.MethodGet, "")
		r.Header.Set(wire.HeaderLastEventID, from.id)
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resumed := events(t, answer)
		for range from.want - 1 {
			if m := next(t, resumed); m.Method != wire.NoteProgress {
				t.Errorf("after %s came %s", from.id, m.Method)
			}
		}
		if m := next(t, resumed); m.ID != "1" || !strings.Contains(string(m.Result), "released") {
			t.Errorf("after %s the answer is %s", from.id, m.Result)
		}
		if _, err := resumed.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the answer: %v", err)
		}
	}
}

func TestDroppedEventsAreRefused(t *testing.T) {
	t.Parallel()
	_, url := serve(t, options(t, tools{}))
	c := &client{t: t, url: url + "/mcp"}
	c.initialize(wire.NewestLegacy)
	for _, id := range []string{"nonsense", "99-1", "main-17"} {
		r := c.request(t.Context(), http.MethodGet, "")
		r.Header.Set(wire.HeaderLastEventID, id)
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", id, answer.StatusCode)
		}
	}
}

func TestReleaseClosesTheConnection(t *testing.T) {
	t.Parallel()
	back := make(chan struct{})
	opts := options(t, tools{"leave": func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		hub.Release(ctx, 10*time.Millisecond)
		<-back
		return textResult("welcome back"), nil
	}})
	opts.Releases = true
	_, url := serve(t, opts)
	c := &client{t: t, url: url + "/mcp"}
	c.initialize(wire.NewestLegacy)
	stream := events(t, c.post(t.Context(), c.call("1", "leave", "")))
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(e.Data) > 0 {
			t.Fatalf("before the end came %s, %v", e.Data, err)
		}
	}
	if stream.Retry() != 10*time.Millisecond {
		t.Errorf("retry after %s", stream.Retry())
	}
	close(back)
	r := c.request(t.Context(), http.MethodGet, "")
	r.Header.Set(wire.HeaderLastEventID, stream.LastID())
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if m := next(t, events(t, answer)); !strings.Contains(string(m.Result), "welcome back") {
		t.Errorf("answer %s", m.Result)
	}
}

func TestReleaseIgnoresClientsThatCannotReconnect(t *testing.T) {
	t.Parallel()
	hub.Release(t.Context(), time.Second) // no call at all
	opts := options(t, tools{"leave": func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		hub.Release(ctx, time.Second)
		return textResult("still here"), nil
	}})
	opts.Releases = true
	_, url := serve(t, opts)
	c := &client{t: t, url: url + "/mcp", modern: true}
	if m := answer(t, c.post(t.Context(), c.call("1", "leave", ""))); !strings.Contains(string(m.Result), "still here") {
		t.Errorf("answer %s", m.Result)
	}
}

func TestQuietCallBecomesAStream(t *testing.T) {
	t.Parallel()
	slow := newHanging()
	opts := options(t, tools{"slow": slow.run})
	opts.Limits.Quiet, opts.Limits.KeepAlive = time.Millisecond, time.Millisecond
	_, url := serve(t, opts)
	c := &client{t: t, url: url + "/mcp", modern: true}
	answers := make(chan *http.Response)
	go func() { answers <- c.post(t.Context(), c.call("1", "slow", "")) }()
	<-slow.began
	response := <-answers
	defer response.Body.Close()
	sign := make([]byte, 1)
	if _, err := io.ReadFull(response.Body, sign); err != nil || sign[0] != ':' {
		t.Errorf("a sign of life is a comment, not %q, %v", sign, err)
	}
	close(slow.release)
	rest, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(rest), "released") {
		t.Errorf("the rest is %q, %v", rest, err)
	}
}

// largeList is a source whose list of tools has 240 KB.
type largeList struct{}

func (largeList) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "echo"}, Description: strings.Repeat("description ", 20_000), Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (largeList) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Output("", nil) }

// A client that opens a stream and never reads it is disconnected when its answers can no
// longer be sent.
func TestClientThatNeverReadsIsDisconnected(t *testing.T) {
	t.Parallel()
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: largeList{}, Limits: hub.Limits{Write: 2 * time.Second}})
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		_ = h.Close(context.WithoutCancel(t.Context()))
		server.Close()
	})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /mcp/sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
	lines := bufio.NewReaderSize(conn, 512)
	var path string
	for path == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, path, _ = strings.Cut(strings.TrimSpace(line), "data: ")
	}
	if h.Sessions() != 1 {
		t.Fatalf("%d sessions", h.Sessions())
	}
	post := func(message string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	for i := range 100 { // each is answered with 240 KB, which the client does not read
		post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i+1))
	}
	clocktest.Await(t, func() bool {
		return post(`{"jsonrpc":"2.0","method":"notifications/nothing"}`) == http.StatusNotFound && h.Sessions() == 0
	}, func() string { return "it is still served" })
}
