package hub_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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
