package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// TestPrefixIsStable checks that what providers cache is the same from request to request
// and from turn to turn, on both APIs: tools and system prompt, and then all messages
// that were sent before.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	for provider, start := range map[string]string{"anthropic": `"messages":[`, "openai": `{"role":"user"`} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			steps, err := llmtest.Parse("use fs__tool_00 {}\n---\nsay one\n---\nsay two")
			if err != nil {
				t.Fatal(err)
			}
			server := llmtest.Play(t, steps...)
			s := playModel(t, threeServers(3), server, scripts, func(o *agent.Options) {
				o.Model, err = llm.Open(llm.Options{
					Provider: provider, Model: "m", BaseURL: server.URL, Key: secret.New(llmtest.Key),
					Retry: llm.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			s.turn(t, "first")
			s.turn(t, "second", func(r *agent.Request) { r.History = []agent.Exchange{{User: "first", Assistant: "one"}} })
			var before string
			for i, request := range s.model.Requests() {
				body := strings.ReplaceAll(string(request.Body), `,"cache_control":{"type":"ephemeral"}`, "") // it marks the end
				prefix, messages, found := strings.Cut(body, start)
				if !found || i > 0 && prefix != before {
					t.Errorf("request %d: the prefix changed from\n%s\nto\n%s", i, before, prefix)
				}
				before = prefix
				if !strings.Contains(messages, "first") {
					t.Errorf("request %d: %s", i, messages)
				}
			}
			for i, turn := range s.model.Requests()[0].Turns {
				for n, later := range s.model.Requests()[1:] {
					if later.Turns[i] != turn {
						t.Errorf("message %d is %v in request %d, was %v", i, later.Turns[i], n+1, turn)
					}
				}
			}
		})
	}
}
