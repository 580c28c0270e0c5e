package hub_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// hangingPeer is an upstream whose calls hang.
type hangingPeer struct {
	*scripted
	*hanging
}

func (p hangingPeer) Call(ctx context.Context, call tool.Call, _ json.RawMessage) (tool.Result, error) {
	return p.run(ctx, call)
}

// eachEra runs a test in both eras with a function that calls a hanging tool through a
// relay, where the goroutine of the HTTP request makes the call.
func eachEra(t *testing.T, test func(t *testing.T, c *client, slow *hanging, call func(context.Context) <-chan *http.Response)) {
	t.Helper()
	for _, modern := range []bool{true, false} {
		t.Run(map[bool]string{true: "modern", false: "legacy"}[modern], func(t *testing.T) {
			t.Parallel()
			slow := newHanging()
			opts := options(t, tools{})
			opts.Upstreams = upstreams{"up": hangingPeer{&scripted{}, slow}}
			_, url := serve(t, opts)
			c := &client{t: t, url: url + "/mcp/up", modern: modern}
			meta := `,"_meta":{"progressToken":7}`
			if modern {
				meta = `,"_meta":{"progressToken":7,` + c.modernMeta() + `}`
			} else {
				c.initialize(wire.NewestLegacy)
			}
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}` + meta + `}}`
			test(t, c, slow, func(ctx context.Context) <-chan *http.Response {
				answers := make(chan *http.Response, 1)
				go func() {
					answer, err := httpjsontest.Client.Do(c.request(ctx, http.MethodPost, body))
					if err == nil {
						answers <- answer
					}
					close(answers)
				}()
				return answers
			})
		})
	}
}

func TestInlineAnswerIsJSON(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, _ *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		answers := call(t.Context())
		<-slow.began
		close(slow.release)
		response := <-answers
		if kind := response.Header.Get("Content-Type"); kind != wire.ContentJSON {
			t.Errorf("answered with %s", kind)
		}
		if m := answer(t, response); !strings.Contains(string(m.Result), "released") {
			t.Errorf("the answer is %s", m.Result)
		}
	})
}

func TestInlineMessagesAreStreamed(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, _ *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		answers := call(t.Context())
		running := <-slow.began
		running.Caller.Progress(tool.Progress{Progress: 1})
		stream := events(t, <-answers) // it is there before the answer is
		if m := next(t, stream); m.Method != wire.NoteProgress {
			t.Errorf("first came %+v", m)
		}
		close(slow.release)
		if m := next(t, stream); m.ID != "1" || !strings.Contains(string(m.Result), "released") {
			t.Errorf("the answer is %+v", m)
		}
	})
}

func TestInlineDisconnectCancels(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, _ *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		ctx, leave := context.WithCancel(t.Context())
		answers := call(ctx)
		<-slow.began
		leave()
		<-answers
		if err := <-slow.cancelled; err == nil || !strings.Contains(err.Error(), "closed the connection") {
			t.Errorf("cancelled because of %v", err)
		}
	})
}

// A client of the sessions era that loses a stream reconnects for the rest.
func TestInlineStreamIsResumed(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, c *client, slow *hanging, call func(context.Context) <-chan *http.Response) {
		ctx, leave := context.WithCancel(t.Context())
		answers := call(ctx)
		running := <-slow.began
		running.Caller.Progress(tool.Progress{Progress: 1})
		stream := events(t, <-answers)
		next(t, stream)
		last := stream.LastID()
		leave()
		if c.modern {
			<-slow.cancelled
			return
		}
		r := c.request(t.Context(), http.MethodGet, "")
		r.Header.Set(wire.HeaderLastEventID, last)
		again, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resumed := events(t, again)
		close(slow.release)
		if m := next(t, resumed); m.ID != "1" || !strings.Contains(string(m.Result), "released") {
			t.Errorf("the answer is %+v", m)
		}
	})
}
