package llm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
)

// claudeEvents serves events, one JSON object per line, and records the request.
func claudeEvents(t *testing.T, events string) (url string, request *http.Request, body *[]byte) {
	t.Helper()
	request, body = &http.Request{}, new([]byte)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*request = *r
		*body, _ = io.ReadAll(r.Body)
		for line := range strings.Lines(events) {
			fmt.Fprintf(w, "data: %s\n\n", strings.TrimSpace(line))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, request, body
}

const (
	claudeStart = `{"type":"message_start","message":{"id":"m1","model":"claude-x","content":[],"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":1}}}`
	claudeEnd   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}` + "\n" + `{"type":"message_stop"}`
)

// TestClaudeBlocksAreSentBack checks that blocks which are neither text nor tool calls come
// back as the API expects them, and that unknown events are allowed.
func TestClaudeBlocksAreSentBack(t *testing.T) {
	t.Parallel()
	url, _, _ := claudeEvents(t, strings.Join([]string{
		claudeStart,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so \"it"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\" is"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc="}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"zzz"}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}`,
		`{"type":"ping"}`,
		`{"type":"something_new","index":99}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"well"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{}}}`,
		claudeEnd,
	}, "\n"))
	m, _ := open(t, "anthropic", url)
	answer, err := m.Answer(t.Context(), question, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range answer.Blocks {
		got = append(got, string(b.Raw)+b.Text)
	}
	want := []string{
		`{"signature":"abc=","thinking":"so \"it\" is","type":"thinking"}`, `{"data":"zzz","type":"redacted_thinking"}`,
		`{"id":"s1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}`, "well",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if u := answer.Usage; answer.ID != "m1" || answer.Model != "claude-x" || u.Input != 7 || u.Output != 9 || u.CacheRead != 3 {
		t.Errorf("%+v", answer)
	}
}

// TestClaudeRequest checks the body and the headers of a request.
func TestClaudeRequest(t *testing.T) {
	t.Parallel()
	url, request, body := claudeEvents(t, claudeStart+"\n"+claudeEnd)
	m, _ := open(t, "anthropic", url+"/v1/", func(o *llm.Options) { o.MaxTokens, o.Temperature = 100, new(float64) })
	p := question
	p.Messages = append(p.Messages[:1:1],
		llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Raw: json.RawMessage(`{"type":"thinking"}`)}, {Use: &llm.Use{ID: "u1", Name: "weather"}}}},
		llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: &llm.Result{ID: "u1", Failed: true}}, {Text: "go on"}}})
	if _, err := m.Answer(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	const cache = `"cache_control":{"type":"ephemeral"}`
	want := `{"model":"claude-sonnet-5-5","max_tokens":100,"stream":true,"temperature":0,` +
		`"system":[{"type":"text","text":"be brief",` + cache + `},{"type":"text","text":"today is Tuesday"}],` +
		`"tools":[{"name":"weather","description":"tells it","input_schema":{"type":"object","properties":{"city":{"type":"string"}}},` + cache + `}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"how is it?"}]},` +
		`{"role":"assistant","content":[{"type":"thinking"},{"type":"tool_use","id":"u1","name":"weather","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"u1","is_error":true},{"type":"text","text":"go on",` + cache + `}]}]}`
	if got := string(*body); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if request.URL.Path != "/v1/messages" || request.Header.Get("X-Api-Key") == "" || request.Header.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("%s %v", request.URL, request.Header)
	}
}

// TestClaudeInvalidStreams checks that an answer that makes no sense is an error, and is
// not asked for again.
func TestClaudeInvalidStreams(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]string{
		"a delta before its block": `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`,
		"a negative index":         `{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"x"}}`,
		"a block far away":         `{"type":"content_block_start","index":1000000,"content_block":{"type":"text"}}`,
		"a block that is a list":   `{"type":"content_block_start","index":0,"content_block":[]}`,
	} {
		url, _, _ := claudeEvents(t, claudeStart+"\n"+events+"\n"+claudeEnd)
		m, waits := open(t, "anthropic", url)
		if _, err := m.Answer(t.Context(), question, nil); fault.CodeOf(err) != fault.Upstream || len(waits.taken) > 0 {
			t.Errorf("%s: %v after %d more tries", name, err, len(waits.taken))
		}
	}
}

// TestHalfAnEventIsAskedForAgain checks that an answer that was cut inside an event, before
// any text of it was passed on, is asked for again.
func TestHalfAnEventIsAskedForAgain(t *testing.T) {
	t.Parallel()
	url, _, _ := claudeEvents(t, claudeStart+"\n"+`{"type":`)
	m, waits := open(t, "anthropic", url)
	if _, err := m.Answer(t.Context(), question, nil); fault.CodeOf(err) != fault.Upstream || len(waits.taken) != 3 {
		t.Errorf("%v after %d more tries", err, len(waits.taken))
	}
}
