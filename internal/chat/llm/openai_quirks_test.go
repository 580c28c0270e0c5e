package llm_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
)

// TestFormatDeviations checks known deviations from OpenAI's format.
func TestFormatDeviations(t *testing.T) {
	t.Parallel()
	const choice = `data: {"choices":[{"delta":%s,"finish_reason":%s}]}` + "\n\n"
	event := func(delta, finish string) string { return fmt.Sprintf(choice, delta, finish) }
	tests := map[string]struct{ kind, body, want string }{
		"does not stream": {"application/json", `{"id":"x","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "hi||end_turn|1"},
		"no [DONE]":       {"", event(`{"content":"hi"}`, `"stop"`), "hi||end_turn|1"},
		"whole calls without index, and stop": {"",
			event(`{"tool_calls":[{"id":"1","function":{"name":"a","arguments":"{}"}},{"id":"2","function":{"name":"b","arguments":"{\"x\":1}"}}]}`, `"stop"`), `|a{} b{"x":1}|tool_use|1`},
		"arguments as an object": {"", event(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"a","arguments":{"x":1}}}]}`, `"tool_calls"`), `|a{"x":1}|tool_use|1`},
		"no ids":                 {"", event(`{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{}"}}]}`, `"tool_calls"`), `|a{}|tool_use|1`},
		"null content":           {"", event(`{"role":"assistant","content":null}`, `null`) + event(`{"content":"hi"}`, `"stop"`) + "data: [DONE]\n\n", "hi||end_turn|1"},
		"a refusal":              {"", event(`{"refusal":"no"}`, `null`) + event(`{}`, `"stop"`), "no||refusal|1"},
		"an index out of bounds": {"", event(`{"tool_calls":[{"index":1000000,"function":{"name":"a"}}]}`, `"stop"`), "upstream_error no call to belong to"},
		"not JSON":               {"", "data: hello\n\n", "upstream_error read answer"},
		"a page":                 {"application/json", `<html>`, "upstream_error read answer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				if tt.kind == "" {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			m, _ := open(t, "openai", server.URL+"/v1/")
			answer, err := m.Answer(t.Context(), question, nil)
			if err != nil {
				code, words, _ := strings.Cut(tt.want, " ")
				if string(fault.CodeOf(err)) != code || !strings.Contains(err.Error(), words) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			if got := summary(answer); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			for _, use := range answer.Uses() {
				if use.ID == "" {
					t.Errorf("%s has no id", use.Name)
				}
			}
		})
	}
}

// FuzzOpenAIStream checks that any stream gives an answer or an error, not a panic.
func FuzzOpenAIStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}]}\n\n")
	f.Add("data: [DONE]\n\n")
	f.Add("data: {\"error\":\"x\"}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		transport := roundTrip(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.WriteString(body)
			return w.Result(), nil
		})
		m, _ := open(t, "openai", "http://127.0.0.1:1", func(o *llm.Options) { o.Transport = transport })
		_, err := m.Answer(t.Context(), question, nil)
		if err != nil && fault.CodeOf(err) == fault.Internal {
			t.Errorf("%q: %v", body, err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
