package hub_test

import (
	"context"
	"encoding/json"
	"net/http"
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

func modernHeader(name string) http.Header {
	return http.Header{wire.HeaderRevision: {wire.NewestModern}, wire.HeaderMethod: {wire.MethodToolsCall}, wire.HeaderName: {name}}
}

// inputRequired reads an answer that asks back.
func inputRequired(t testing.TB, m wire.Message) (requests json.RawMessage, state string) {
	t.Helper()
	if kind, _ := rawjson.GetText(m.Result, "resultType"); kind != wire.ResultInputRequired {
		t.Fatalf("answer is %s, %v", m.Result, m.Error)
	}
	requests, _ = rawjson.Get(m.Result, "inputRequests")
	state, _ = rawjson.GetText(m.Result, "requestState")
	return requests, state
}

func TestPendingCallTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{"ask": func(ctx context.Context, call tool.Call) (tool.Result, error) {
			_, err := call.Caller.Ask(ctx, []tool.Question{askName})
			got <- err
			return tool.Result{}, err
		}}})
		defer h.Close(t.Context())
		c := &client{t: t, modern: true, caps: `{"elicitation":{}}`}
		w := post(t, h.Handler(), modernHeader("ask"), c.call("1", "ask", ""))
		m, err := wire.Parse(w.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		_, state := inputRequired(t, m)
		time.Sleep(11 * time.Minute)
		if err := <-got; fault.CodeOf(err) != fault.Timeout {
			t.Errorf("the tool got %v", err)
		}
		w = post(t, h.Handler(), modernHeader("ask"), c.call("2", "ask", `,"requestState":"`+state+`","inputResponses":{"name":{"action":"accept"}}`))
		if !strings.Contains(w.Body.String(), "no longer waits") {
			t.Errorf("coming back too late: %s", w.Body)
		}
	})
}

func TestTicketIsBoundToPrincipal(t *testing.T) {
	t.Parallel()
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{"ask": asks(askName)},
		Principal: func(r *http.Request) string { return r.Header.Get("User") }})
	defer h.Close(t.Context())
	c := &client{t: t, modern: true, caps: `{"elicitation":{}}`}
	ann, bob := modernHeader("ask"), modernHeader("ask")
	ann.Set("User", "ann")
	bob.Set("User", "bob")
	m, err := wire.Parse(post(t, h.Handler(), ann, c.call("1", "ask", "")).Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	_, state := inputRequired(t, m)
	retry := c.call("2", "ask", `,"requestState":"`+state+`","inputResponses":{"name":{"action":"accept"}}`)
	if w := post(t, h.Handler(), bob, retry); !strings.Contains(w.Body.String(), "not valid for this request") {
		t.Errorf("bob with ann's ticket: %s", w.Body)
	}
	if w := post(t, h.Handler(), ann, retry); !strings.Contains(w.Body.String(), "accept") {
		t.Errorf("ann: %s", w.Body)
	}
}

// Questions that are asked at the same time, one by one, go to the client together.
func TestConcurrentQuestionsAreSentTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sample := tool.Question{Method: wire.MethodSample, Params: json.RawMessage(`{}`)}
		roots := tool.Question{Method: wire.MethodRoots}
		h := hub.New(hub.Options{Name: "t", Version: "1", Tools: tools{"ask": func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var group sync.WaitGroup
			got := make([]string, 3)
			for i, q := range []tool.Question{sample, roots, roots} {
				group.Go(func() {
					answers, err := call.Caller.Ask(ctx, []tool.Question{q})
					if err != nil {
						t.Errorf("ask %d: %v", i, err)
						return
					}
					got[i] = string(answers[0])
				})
			}
			group.Wait()
			return textResult(strings.Join(got, " ")), nil
		}}})
		defer h.Close(t.Context())
		c := &client{t: t, modern: true, caps: `{"sampling":{},"roots":{}}`}
		m, err := wire.Parse(post(t, h.Handler(), modernHeader("ask"), c.call("1", "ask", "")).Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		requests, state := inputRequired(t, m)
		var keys []string
		rawjson.Each(requests, func(key string, _ json.RawMessage) bool { keys = append(keys, key); return true })
		responses := "{"
		for i, key := range keys {
			if i > 0 {
				responses += ","
			}
			responses += `"` + key + `":{"is":"` + key + `"}`
		}
		w := post(t, h.Handler(), modernHeader("ask"), c.call("2", "ask", `,"requestState":"`+state+`","inputResponses":`+responses+`}`))
		for _, want := range []string{"sampling-1", "roots-1", "roots-2"} {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s is missing in %s", want, w.Body)
			}
		}
	})
}

func TestLegacyQuestionIsSentOnTheCallsStream(t *testing.T) {
	t.Parallel()
	_, url := serve(t, options(t, tools{"ask": asks(askName)}))
	c := &client{t: t, url: url + "/mcp", caps: `{"elicitation":{}}`}
	c.initialize(wire.NewestLegacy)
	stream := events(t, c.post(t.Context(), c.call("1", "ask", "")))
	question := next(t, stream)
	if question.Method != wire.MethodElicit || question.ID == "" || string(question.Params) != string(askName.Params) {
		t.Fatalf("asked %s %s", question.Method, question.Params)
	}
	c.post(t.Context(), `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"result":{"action":"decline"}}`).Body.Close()
	if m := next(t, stream); m.ID != "1" || !strings.Contains(string(m.Result), "decline") {
		t.Errorf("answered %s, %v", m.Result, m.Error)
	}
}

func TestLegacyRefusalReachesTheTool(t *testing.T) {
	t.Parallel()
	_, url := serve(t, options(t, tools{"ask": asks(askName)}))
	c := &client{t: t, url: url + "/mcp", caps: `{"elicitation":{}}`}
	c.initialize(wire.NewestLegacy)
	stream := events(t, c.post(t.Context(), c.call("1", "ask", "")))
	question := next(t, stream)
	c.post(t.Context(), `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"error":{"code":-1,"message":"no"}}`).Body.Close()
	if m := next(t, stream); m.Error == nil || m.Error.Code != -1 {
		t.Errorf("answered %s, %v", m.Result, m.Error)
	}
}

func TestCancelledCallCancelsItsQuestion(t *testing.T) {
	t.Parallel()
	_, url := serve(t, options(t, tools{"ask": asks(askName)}))
	c := &client{t: t, url: url + "/mcp", caps: `{"elicitation":{}}`}
	c.initialize(wire.NewestLegacy)
	stream := events(t, c.post(t.Context(), c.call("1", "ask", "")))
	question := next(t, stream)
	c.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`).Body.Close()
	if m := next(t, stream); m.Method != wire.NoteCancelled || string(m.Params) != `{"requestId":`+string(question.ID)+`}` {
		t.Errorf("after cancelling came %s %s", m.Method, m.Params)
	}
}

func TestClientThatReadsNoStreamsIsNotAsked(t *testing.T) {
	t.Parallel()
	_, url := serve(t, options(t, tools{"ask": asks(askName)}))
	c := &client{t: t, url: url + "/mcp", caps: `{"elicitation":{}}`}
	c.initialize(wire.NewestLegacy)
	r := c.request(t.Context(), http.MethodPost, c.call("1", "ask", ""))
	r.Header.Set("Accept", "application/json")
	response, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if m := answer(t, response); !strings.Contains(string(m.Result), "accepts no event streams") {
		t.Errorf("answered %s", m.Result)
	}
}

func TestURLElicitationNeedsItsOwnCapability(t *testing.T) {
	t.Parallel()
	visit := tool.Question{Key: "visit", Method: wire.MethodElicit, Params: json.RawMessage(`{"mode":"url","url":"https://x.test"}`)}
	_, url := serve(t, options(t, tools{"ask": asks(visit)}))
	for caps, want := range map[string]bool{`{"elicitation":{}}`: false, `{"elicitation":{"form":{}}}`: false, `{"elicitation":{"url":{}}}`: true} {
		c := &client{t: t, url: url + "/mcp", modern: true, caps: caps}
		m := answer(t, c.post(t.Context(), c.call("1", "ask", "")))
		if asked := m.Error == nil; asked != want {
			t.Errorf("with %s: %s, %v", caps, m.Result, m.Error)
		}
	}
}

func TestTicketIsBoundToEndpoint(t *testing.T) {
	t.Parallel()
	opts := options(t, tools{"ask": asks(askName)})
	opts.Upstreams = upstreams{"up": &scripted{}}
	_, url := serve(t, opts)
	here := &client{t: t, url: url + "/mcp", modern: true, caps: `{"elicitation":{}}`}
	_, state := inputRequired(t, answer(t, here.post(t.Context(), here.call("1", "ask", ""))))
	retry := here.call("2", "ask", `,"requestState":"`+state+`","inputResponses":{"name":{"action":"accept"}}`)
	there := &client{t: t, url: url + "/mcp/up", modern: true, caps: `{"elicitation":{}}`}
	if m := answer(t, there.post(t.Context(), retry)); m.Error == nil {
		t.Errorf("at another address: %s", m.Result)
	}
	if m := answer(t, here.post(t.Context(), retry)); m.Error != nil {
		t.Errorf("at its own: %v", m.Error)
	}
}
