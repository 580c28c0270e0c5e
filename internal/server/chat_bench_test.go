package server

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
)

// BenchmarkFirstWord measures the time from when the provider sends the first word of an
// answer until a client of POST /api/v1/chat/stream has read it. It includes both
// connections, the provider's library, the agent and the user's queue.
//
//	make bench-chat
func BenchmarkFirstWord(b *testing.B) {
	for _, provider := range []string{"anthropic", "openai"} {
		b.Run(provider, func(b *testing.B) {
			sent := make(chan time.Time, 1)
			model := llmtest.Start(b, func(llmtest.Request) llmtest.Step {
				return llmtest.Step{Say: []string{"first ", "second"}, Spoken: func() { sent <- time.Now() }}
			})
			url, _ := start(b, config.Sources{
				Env: config.Environment{"ANTHROPIC_API_KEY": llmtest.Key, "OPENAI_API_KEY": llmtest.Key},
				Flags: map[string]string{
					"chat.provider": provider, "chat.base_url": model.URL, "chat.model": "claude-sonnet-5-5", "chat.rate": "1000000",
				},
			})
			var took []time.Duration
			for b.Loop() {
				took = append(took, firstWord(b, url, sent))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// firstWord sends a message and returns how long the first word of the answer took.
func firstWord(b *testing.B, url string, sent <-chan time.Time) time.Duration {
	b.Helper()
	body := strings.NewReader(`{"client_id":"bench","user_id":"u","message":"go"}`)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+"/api/v1/chat/stream", body)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "first ") {
	}
	read := time.Now()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		b.Fatal(err)
	}
	select {
	case at := <-sent:
		return read.Sub(at)
	default:
		b.Fatalf("no answer: %s", answer.Status)
		return 0
	}
}
