package hub_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// person logs in to an upstream once, on a page.
type person struct {
	once sync.Once
	in   chan struct{} // closed after the login
}

func newPerson() *person { return &person{in: make(chan struct{})} }

func (p *person) logIn() { p.once.Do(func() { close(p.in) }) }

func (p *person) AwaitLogin(ctx context.Context, upstream string) error {
	if upstream != "docs" {
		return fault.New(fault.NotFound, "no upstream %q", upstream)
	}
	select {
	case <-p.in:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read is a tool of docs, which requires the login.
func (p *person) read(context.Context, tool.Call) (tool.Result, error) {
	select {
	case <-p.in:
		return textResult("read"), nil
	default:
	}
	cause := fault.New(fault.NeedsAuth, "upstream docs requires your login").WithHint("open https://hub.test/connect/docs").
		WithDetails(map[string]any{"login": map[string]string{"upstream": "docs", "url": "https://hub.test/connect/docs"}})
	return tool.Result{}, fault.Wrap(fault.NeedsAuth, cause, "call docs.read")
}

func (p *person) options() hub.Options {
	return hub.Options{Name: "t", Version: "1", Tools: tools{"read": p.read}, Logins: p}
}

// A client that can show pages is asked to, and the call goes on after the login.
func TestLegacyCallAsksForALogin(t *testing.T) {
	t.Parallel()
	p := newPerson()
	_, url := serve(t, p.options())
	c := &client{t: t, url: url + "/mcp", caps: `{"elicitation":{"form":{},"url":{}}}`}
	c.initialize(wire.NewestLegacy)
	stream := events(t, c.post(t.Context(), c.call("1", "read", "")))
	question := next(t, stream)
	mode, _ := rawjson.GetText(question.Params, "mode")
	link, _ := rawjson.GetText(question.Params, "url")
	id, _ := rawjson.GetText(question.Params, "elicitationId")
	if question.Method != wire.MethodElicit || mode != "url" || link != "https://hub.test/connect/docs" || id == "" {
		t.Fatalf("asked %s %s", question.Method, question.Params)
	}
	c.post(t.Context(), `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"result":{"action":"accept"}}`).Body.Close()
	p.logIn()
	if m := next(t, stream); m.Method != wire.NoteElicitationComplete || string(m.Params) != `{"elicitationId":"`+id+`"}` {
		t.Errorf("after the login came %s %s", m.Method, m.Params)
	}
	if m := next(t, stream); m.ID != "1" || !strings.Contains(string(m.Result), `"read"`) {
		t.Errorf("answered %s, %v", m.Result, m.Error)
	}
}

// Whoever declines, or cannot be asked, gets the link as text or in the error of the
// protocol.
func TestCallWithoutALogin(t *testing.T) {
	t.Parallel()
	_, url := serve(t, newPerson().options())
	hasLink := func(m wire.Message) bool {
		return strings.Contains(string(m.Result), `"isError":true`) && strings.Contains(string(m.Result), "https://hub.test/connect/docs")
	}
	for _, caps := range []string{`{}`, `{"elicitation":{}}`, `{"elicitation":{"form":{}}}`} {
		for _, modern := range []bool{false, true} {
			c := &client{t: t, url: url + "/mcp", caps: caps, modern: modern}
			if !modern {
				c.initialize(wire.NewestLegacy)
			}
			if m := answer(t, c.post(t.Context(), c.call("1", "read", ""))); !hasLink(m) {
				t.Errorf("modern %v, with %s: %s, %v", modern, caps, m.Result, m.Error)
			}
		}
	}
	c := &client{t: t, url: url + "/mcp", caps: `{"elicitation":{"url":{}}}`}
	c.initialize(wire.NewestLegacy)
	stream := events(t, c.post(t.Context(), c.call("1", "read", "")))
	question := next(t, stream)
	c.post(t.Context(), `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"result":{"action":"decline"}}`).Body.Close()
	if m := next(t, stream); !hasLink(m) {
		t.Errorf("declined: %s, %v", m.Result, m.Error)
	}
	r := c.request(t.Context(), http.MethodPost, c.call("2", "read", ""))
	r.Header.Set("Accept", "application/json")
	response, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	m := answer(t, response)
	if m.Error == nil || m.Error.Code != wire.CodeURLElicitationMissing || !strings.Contains(string(m.Error.Data), `"elicitations":[{"mode":"url"`) {
		t.Errorf("without a stream: %s, %v", m.Result, m.Error)
	}
}

// lastMessage reads a response that became a stream if the call took long.
func lastMessage(t *testing.T, w *httptest.ResponseRecorder) wire.Message {
	t.Helper()
	if r := w.Result(); r.Header.Get("Content-Type") == wire.ContentEvent {
		return next(t, events(t, r))
	}
	m, err := wire.Parse(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A client without sessions accepts as soon as it has opened the page. The hub looks for the
// login when the client comes back, and asks again if there is none yet.
func TestModernCallAsksForALogin(t *testing.T) {
	t.Parallel()
	for name, rounds := range map[string]int{"at once": 1, "later": 3, "never": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPerson()
				h := hub.New(p.options())
				defer h.Close(t.Context())
				c := &client{t: t, modern: true, caps: `{"elicitation":{"url":{}}}`}
				more := ""
				for round := 1; round <= 3; round++ {
					m := lastMessage(t, post(t, h.Handler(), modernHeader("read"), c.call("1", "read", more)))
					requests, state := inputRequired(t, m)
					if !strings.Contains(string(requests), `"mode":"url"`) || strings.Contains(string(requests), "elicitationId") {
						t.Fatalf("asked %s", requests)
					}
					more = `,"requestState":"` + state + `","inputResponses":{"login":{"action":"accept"}}`
					if round == rounds {
						p.logIn()
						break
					}
				}
				m := lastMessage(t, post(t, h.Handler(), modernHeader("read"), c.call("2", "read", more)))
				if want := rounds <= 3; strings.Contains(string(m.Result), `"read"`) != want || strings.Contains(string(m.Result), "https://hub.test/connect/docs") == want {
					t.Errorf("answered %s, %v", m.Result, m.Error)
				}
				time.Sleep(time.Hour) // nothing is left that waits
			})
		})
	}
}
