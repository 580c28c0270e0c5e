package openaiapi_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/chat/openaiapi"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/spending"
)

func (f fixture) stream(t *testing.T, ctx context.Context, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestStream(t *testing.T) {
	t.Parallel()
	f := play(t, "anthropic", `
		say Let me
		say " look."
		use clock__now {}
		---
		say Noon.
		use weather {"city":"Bern"}
		use weather {"city":"Rome"}`)
	response := f.stream(t, t.Context(), `{"model":"luanette","stream":true,"stream_options":{"include_usage":true},"tools":[`+weather+`],"messages":[{"role":"user","content":"go"}]}`)
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Error(kind)
	}
	all := chunks(t, response.Body)
	text := strings.Join(all, "\n")
	has(t, all[0], `"object":"chat.completion.chunk"`, `"delta":{"role":"assistant","content":""}`, `"finish_reason":null`)
	has(t, text, `"delta":{"content":"Let me"}`, `"delta":{"content":" look."}`, `"delta":{"content":"\nNoon."}`,
		`"delta":{"tool_calls":[{"index":0,"id":"call_`, `"index":1,"id":"call_`, `"arguments":"{\"city\":\"Rome\"}"`)
	n := len(all)
	has(t, all[n-3], `"delta":{},"logprobs":null,"finish_reason":"tool_calls"`)
	has(t, all[n-2], `"choices":[],"usage":{"prompt_tokens":`)
	if all[n-1] != "[DONE]" {
		t.Error(all[n-1])
	}
}

// TestStreamBreaks checks that an error after some text is an event of the stream.
func TestStreamBreaks(t *testing.T) {
	t.Parallel()
	f := play(t, "anthropic", "say half\nerror api_error oops")
	all := chunks(t, f.stream(t, t.Context(), `{"model":"luanette","stream":true,"messages":[{"role":"user","content":"go"}]}`).Body)
	has(t, strings.Join(all, "\n"), `"delta":{"content":"half"}`)
	has(t, all[len(all)-1], `{"error":{"message":"`, `"type":"server_error"`)
}

// TestSilentStream checks that comments are sent while nothing else is.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step { return llmtest.Step{Say: []string{"late"}, Hold: hold} })
	f := playModel(t, "anthropic", model, openaiapi.Options{Keepalive: time.Millisecond})
	response := f.stream(t, t.Context(), `{"model":"luanette","stream":true,"messages":[{"role":"user","content":"go"}]}`)
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || lines.Text() != ": keepalive" {
		t.Error(lines.Text())
	}
	close(hold)
	text := ""
	for lines.Scan() {
		text += lines.Text()
	}
	has(t, text, `"delta":{"role":"assistant","content":""}`, `"late"`, "[DONE]")
}

// TestDisconnectEndsTheAnswer checks that an answer that nobody reads is given up, and
// that what it used is counted.
func TestDisconnectEndsTheAnswer(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	asked := make(chan struct{})
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step {
		close(asked)
		return llmtest.Step{Say: []string{"never"}, Hold: hold}
	})
	f := playModel(t, "anthropic", model, openaiapi.Options{Keepalive: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	f.stream(t, ctx, `{"model":"luanette","stream":true,"user":"anna","messages":[{"role":"user","content":"go"}]}`)
	<-asked
	cancel()
	clocktest.Await(t, func() bool {
		used, err := f.usage.Report(t.Context(), spending.Query{Org: profile.DefaultOrg, Since: time.Unix(0, 0)})
		return err == nil && len(used.People) == 1 && used.People[0].User == "anna" && used.People[0].Turns == 1
	})
}
