package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// sleeps records how long a model would have waited.
type sleeps struct {
	mu    sync.Mutex
	taken []time.Duration
}

func (n *sleeps) sleep(ctx context.Context, d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken = append(n.taken, d)
	return ctx.Err()
}

func open(t *testing.T, provider, url string, change ...func(*llm.Options)) (llm.Model, *sleeps) {
	t.Helper()
	waits := &sleeps{}
	o := llm.Options{
		Provider: provider, Model: "claude-sonnet-5-5", BaseURL: url, Key: secret.New(llmtest.Key),
		Retry: llm.Retry{Sleep: waits.sleep},
	}
	for _, c := range change {
		c(&o)
	}
	m, err := llm.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return m, waits
}

var question = llm.Prompt{
	System: "be brief", Context: "today is Tuesday",
	Tools:    []llm.Tool{{Name: "weather", Description: "tells it", Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}},
	Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: "how is it?"}}}},
}

// TestScenarios runs every scenario with both providers.
func TestScenarios(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scenario string
		want     string // text|uses|stop|attempts, or the fault's code and a part of its message
		deltas   string // what was emitted
	}{
		"text in pieces": {
			"expect how is it?\nsystem be brief\nsystem Tuesday\noffer weather\nsay \"It is \"\nsay \"fine.\"",
			"It is fine.||end_turn|1", "It is /fine.",
		},
		"pings everywhere": {"ping\nsay a\nsay b\nuse weather {\"city\":\"Bern\"}", `ab|weather{"city":"Bern"}|tool_use|1`, "a/b/<weather>"},
		"two tools at once": {
			`use weather {"city":"Zürich"}` + "\n" + `use weather {"city":"Basel","days":[1,2]}`,
			`|weather{"city":"Zürich"} weather{"city":"Basel","days":[1,2]}|tool_use|1`, "<weather>/<weather>",
		},
		"a tool without arguments":      {"use weather", "|weather{}|tool_use|1", "<weather>"},
		"refusal":                       {"say \"I will not.\"\nstop refusal", "I will not.||refusal|1", "I will not."},
		"cut at the limit":              {"say well\nuse weather {\"city\":\"Be\"}\nstop max_tokens", "well||max_tokens|1", "well/<weather>"},
		"overloaded, then fine":         {"status 529 overloaded_error Overloaded\n---\nsay ok", "ok||end_turn|2", "(529)/ok"},
		"busy inside the stream":        {"error overloaded_error Overloaded\n---\nsay ok", "ok||end_turn|2", "(529)/ok"},
		"broken before the text":        {"break\n---\nsay ok", "ok||end_turn|2", "(0)/ok"},
		"broken in a tool's arguments":  {"use weather {\"city\":\"Bern\"}\nbreak\n---\nsay ok", "ok||end_turn|2", "<weather>/(0)/ok"},
		"broken after some text":        {"say half\nbreak\n---\nsay never", "upstream_error the answer ended early", "half"},
		"half an event before the text": {"half\n---\nsay ok", "ok||end_turn|2", "(0)/ok"},
		"half an event after some text": {"say half\nhalf\n---\nsay never", "upstream_error read answer", "half"},
		"limited, then fine":            {"status 429 rate_limit_error slow down\nafter 1\n---\nsay ok", "ok||end_turn|2", "(429)/ok"},
		"slow bytes":                    {"slow\nsay Zü\nsay rich\nuse weather {\"city\":\"Zürich\"}", `Zürich|weather{"city":"Zürich"}|tool_use|1`, "Zü/rich/<weather>"},
		"error after some text":         {"say half\nerror overloaded_error Overloaded\n---\nsay never", "unavailable Overloaded", "half"},
		"always busy": {
			strings.Repeat("status 503 api_error down\n---\n", 3) + "status 503 api_error down\n---\nsay never",
			"unavailable 4 times: down", "(503)/(503)/(503)",
		},
		"a wrong request": {"status 400 invalid_request_error no such thing\n---\nsay never", "upstream_error no such thing", ""},
		"too long":        {"status 400 invalid_request_error prompt is too long: 210000 tokens", "limit_exceeded too long", ""},
		"unknown model":   {"status 404 not_found_error model: nope", "invalid_config model: nope", ""},
	}
	for name, tt := range tests {
		for _, provider := range []string{"anthropic", "openai"} {
			t.Run(name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				steps, err := llmtest.Parse(tt.scenario)
				if err != nil {
					t.Fatal(err)
				}
				server := llmtest.Play(t, steps...)
				m, _ := open(t, provider, server.URL)
				var deltas []string
				answer, err := m.Answer(t.Context(), question, func(d llm.Delta) { deltas = append(deltas, shown(d)) })
				if got := strings.Join(deltas, "/"); got != tt.deltas {
					t.Errorf("emitted %q, want %q", got, tt.deltas)
				}
				if err != nil {
					code, words, _ := strings.Cut(tt.want, " ")
					if string(fault.CodeOf(err)) != code || !strings.Contains(err.Error(), words) {
						t.Errorf("got %s: %v; want %s", fault.CodeOf(err), err, tt.want)
					}
					return
				}
				if got := summary(answer); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		}
	}
}

func shown(d llm.Delta) string {
	switch {
	case d.Use != "":
		return "<" + d.Use + ">"
	case d.Wait != nil:
		return fmt.Sprintf("(%d)", d.Wait.Status)
	default:
		return d.Text
	}
}

func summary(a llm.Answer) string {
	var uses []string
	for _, u := range a.Uses() {
		uses = append(uses, u.Name+string(u.Input))
	}
	return fmt.Sprintf("%s|%s|%s|%d", a.Text(), strings.Join(uses, " "), a.Stop, a.Attempts)
}

// TestRetryAfter checks that a retry waits as long as the endpoint says, and fails at once
// if that is too long.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			limited := llmtest.Step{Status: 429, Kind: "rate_limit_error", Text: "slow down", RetryAfter: "7"}
			server := llmtest.Play(t, limited, llmtest.Step{Say: []string{"ok"}})
			m, waits := open(t, provider, server.URL)
			if _, err := m.Answer(t.Context(), question, nil); err != nil {
				t.Fatal(err)
			}
			if len(waits.taken) != 1 || waits.taken[0] != 7*time.Second {
				t.Errorf("waited %v, want 7 s once", waits.taken)
			}

			limited.RetryAfter = "3600"
			server = llmtest.Play(t, limited)
			m, waits = open(t, provider, server.URL)
			_, err := m.Answer(t.Context(), question, nil)
			if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.HintOf(err), "1h0m0s") || len(waits.taken) != 0 {
				t.Errorf("got %v (%s) after waits %v", err, fault.HintOf(err), waits.taken)
			}
		})
	}
}

func TestWrongKeyErrorNamesTheVariableNotTheKey(t *testing.T) {
	t.Parallel()
	for provider, variable := range map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"} {
		server := llmtest.Play(t)
		m, _ := open(t, provider, server.URL, func(o *llm.Options) { o.Key = secret.New("sk-wrong-key-42") })
		_, err := m.Answer(t.Context(), question, nil)
		if fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(fault.HintOf(err), variable) {
			t.Errorf("%s: %v, hint %s", provider, err, fault.HintOf(err))
		}
		if text := fmt.Sprintf("%v %+v %s", err, err, fault.HintOf(err)); strings.Contains(text, "wrong-key") {
			t.Errorf("the error contains the key: %s", text)
		}
	}
}

// TestSecondQuestion checks that tool results and the model's reasoning are sent back unchanged.
func TestSecondQuestion(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		server := llmtest.Play(t,
			llmtest.Step{Think: "hm", Say: []string{"let me see"}, Use: []llmtest.Use{{Name: "weather", Input: `{"n":12345678901234567890}`}}},
			llmtest.Step{Expect: []string{"rain"}, Say: []string{"it rains"}},
		)
		m, _ := open(t, provider, server.URL)
		first, err := m.Answer(t.Context(), question, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := question
		result := llm.Block{Result: &llm.Result{ID: first.Uses()[0].ID, Text: "rain"}}
		next.Messages = append(next.Messages[:1:1],
			llm.Message{Role: llm.Assistant, Blocks: first.Blocks}, llm.Message{Role: llm.User, Blocks: []llm.Block{result}})
		second, err := m.Answer(t.Context(), next, nil)
		if err != nil || second.Text() != "it rains" {
			t.Fatalf("%s: %+v, %v", provider, second, err)
		}
		body := string(server.Requests()[1].Body)
		if !strings.Contains(body, "12345678901234567890") {
			t.Errorf("%s: the number was changed: %s", provider, body)
		}
		if provider == "anthropic" && !strings.Contains(body, `"signature":"EqQBstandin"`) {
			t.Errorf("the thinking was not sent back: %s", body)
		}
	}
}

func TestUsageAndCost(t *testing.T) {
	t.Parallel()
	server := llmtest.Play(t, llmtest.Step{Say: []string{"a"}}, llmtest.Step{Say: []string{"b"}})
	m, _ := open(t, "anthropic", server.URL)
	first, err := m.Answer(t.Context(), question, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := m.Answer(t.Context(), question, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Usage.CacheWrite == 0 || first.Usage.CacheRead != 0 || second.Usage.CacheRead != first.Usage.CacheWrite || second.Usage.CacheWrite != 0 {
		t.Errorf("the second question did not come from the cache: %+v, then %+v", first.Usage, second.Usage)
	}
	u := first.Usage
	if want := (float64(u.Input)*2 + float64(u.Output)*10 + float64(u.CacheWrite)*2.5) / 1e6; u.Cost != want || u.Input != 100 || u.Output != 20 {
		t.Errorf("usage %+v, want cost %v", u, want)
	}

	server = llmtest.Play(t, llmtest.Step{Say: []string{"a"}})
	m, _ = open(t, "anthropic", server.URL, func(o *llm.Options) { o.Prices = map[string]llm.Price{"claude": {Output: 7}, "claude-s": {Output: 6}} })
	if answer, err := m.Answer(t.Context(), question, nil); err != nil || answer.Usage.Cost != 20*6/1e6 {
		t.Errorf("with prices of one's own: usage %+v, %v", answer.Usage, err)
	}

	server = llmtest.Play(t, llmtest.Step{Say: []string{"a"}})
	m, _ = open(t, "openai", server.URL, func(o *llm.Options) {
		o.Model, o.Prices = "local-7b", map[string]llm.Price{"local": {Input: 1, Output: 2, CacheRead: 0.5}}
	})
	answer, err := m.Answer(t.Context(), question, nil)
	if want := (llm.Usage{Input: 100, Output: 20, CacheRead: 20, Cost: (100*1 + 20*2 + 20*0.5) / 1e6}); err != nil || answer.Usage != want {
		t.Errorf("usage %+v, %v; want %+v", answer.Usage, err, want)
	}
}

// TestSilence checks that a request to an endpoint that stops sending is aborted and retried.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		var answers func(llmtest.Request) llmtest.Step
		server := llmtest.Start(t, func(r llmtest.Request) llmtest.Step { return answers(r) })
		synctest.Test(t, func(t *testing.T) {
			answers = llmtest.Sequence(llmtest.Step{Hold: make(chan struct{}), Say: []string{"late"}}, llmtest.Step{Say: []string{"ok"}})
			m, _ := open(t, provider, server.URL, func(o *llm.Options) { o.Transport = inProcess{server} })
			answer, err := m.Answer(t.Context(), question, nil)
			if err != nil || answer.Text() != "ok" || answer.Attempts != 2 {
				t.Errorf("%s: %+v, %v", provider, answer, err)
			}
		})
	}
}

// inProcess calls a server without a network, so that in a synctest bubble time passes
// only while both sides wait.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	body, pipe := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = pipe.CloseWithError(context.Cause(r.Context())) })
	answered := make(chan *http.Response, 1)
	go func() {
		h.ServeHTTP(&pipeWriter{header: http.Header{}, pipe: pipe, answered: answered, answer: &http.Response{Body: body, Request: r}}, r)
		_ = pipe.Close()
	}()
	return <-answered, nil
}

// pipeWriter is the server's side. A write returns when the client has read it.
type pipeWriter struct {
	header   http.Header
	pipe     *io.PipeWriter
	answered chan<- *http.Response
	answer   *http.Response
}

func (s *pipeWriter) Header() http.Header         { return s.header }
func (s *pipeWriter) Write(p []byte) (int, error) { return s.pipe.Write(p) }

func (s *pipeWriter) WriteHeader(status int) {
	s.answer.StatusCode, s.answer.Header = status, s.header
	s.answered <- s.answer
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		hold := make(chan struct{})
		t.Cleanup(func() { close(hold) })
		ctx, cancel := context.WithCancel(t.Context())
		server := llmtest.Start(t, func(llmtest.Request) llmtest.Step {
			cancel()
			return llmtest.Step{Hold: hold, Say: []string{"late"}}
		})
		m, _ := open(t, provider, server.URL)
		if _, err := m.Answer(ctx, question, nil); fault.CodeOf(err) != fault.Cancelled {
			t.Errorf("%s: %v", provider, err)
		}
		if n := len(server.Requests()); n != 1 {
			t.Errorf("%s: %d requests, want 1", provider, n)
		}
	}
}

func TestOpenRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]llm.Options{
		"no key":              {},
		"no model":            {Provider: "openai", BaseURL: "http://127.0.0.1:1/v1"},
		"no key for openai":   {Provider: "openai", Model: "x"},
		"an unknown provider": {Provider: "oracle"},
		"no address":          {BaseURL: "localhost:11434", Model: "x"},
		"a file":              {BaseURL: "file:///etc/passwd", Model: "x"},
		"no scheme":           {BaseURL: "://", Model: "x"},
	} {
		if _, err := llm.Open(o); fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
