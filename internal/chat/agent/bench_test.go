package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// BenchmarkFirstToken measures what lies between the provider's first word leaving
// the connection and the agent handing it on: the SDK or our own reader, and the
// agent. p50 and p99 of that, and the CPU of a whole turn with both its ends, are
// reported; on a busy machine the scheduler's share is in them.
//
//	go test ./internal/chat/agent -run xxx -bench FirstToken -benchtime 500x
func BenchmarkFirstToken(b *testing.B) {
	for _, provider := range []string{"anthropic", "openai"} {
		b.Run(provider, func(b *testing.B) {
			stamp := &stamped{base: http.DefaultTransport.(*http.Transport).Clone()}
			server := llmtest.Start(b, func(llmtest.Request) llmtest.Step {
				return llmtest.Step{Say: []string{"first ", "second ", "third"}}
			})
			model, err := llm.Open(llm.Options{
				Provider: provider, Model: "claude-sonnet-5-5", BaseURL: server.URL, Key: secret.New(llmtest.Key), Transport: stamp,
			})
			if err != nil {
				b.Fatal(err)
			}
			a, err := agent.New(agent.Options{Model: model})
			if err != nil {
				b.Fatal(err)
			}
			var took []time.Duration
			before := cpuTime()
			for b.Loop() {
				first := true
				_, err := a.Turn(context.Background(), agent.Request{User: "u", Message: "go"}, func(e agent.Event) {
					if _, ok := e.(agent.Text); ok && first {
						first = false
						took = append(took, time.Since(time.Unix(0, stamp.word.Load())))
					}
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(len(took)), "cpu-µs/turn")
		})
	}
}

// stamped notes when the bytes of the first word came out of the connection.
type stamped struct {
	base http.RoundTripper
	word atomic.Int64
}

func (s *stamped) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.base.RoundTrip(r)
	if err == nil {
		resp.Body = &stampedBody{ReadCloser: resp.Body, stamp: s}
	}
	return resp, err
}

type stampedBody struct {
	io.ReadCloser
	stamp *stamped
	seen  bool
}

func (s *stampedBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if !s.seen && bytes.Contains(p[:n], []byte("first ")) {
		s.seen = true
		s.stamp.word.Store(time.Now().UnixNano())
	}
	return n, err
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(fmt.Sprint("getrusage: ", err))
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
