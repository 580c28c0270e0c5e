package processes

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/tool"
)

// pausing lets a test stop the world during the calls of a source.
type pausing struct {
	*counter
	during func()
}

func (p *pausing) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	result, err := p.counter.Call(ctx, call)
	p.during()
	return result, err
}

// TestKilledDuringAChatCall kills the server at each step of a message: while the model
// answers, while a tool that must not be called twice runs, and while the model reads
// its result. The tool is called once, and a person who cannot be told its outcome is told
// so.
func TestKilledDuringAChatCall(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"first answer", "call", "second answer"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			here, proceed := make(chan struct{}, 10), make(chan struct{})
			pause := func(now string) {
				if now == moment {
					here <- struct{}{}
					<-proceed
				}
			}
			model := llmtest.New(func(r llmtest.Request) llmtest.Step {
				if len(r.Turns) == 1 {
					pause("first answer")
					return llmtest.Step{Use: []llmtest.Use{{Name: "counter__push", Input: `{"job":"pay","step":1}`}}}
				}
				pause("second answer")
				return llmtest.Step{Say: []string{"The tool said: " + r.Last()}}
			})
			t.Cleanup(model.Close)
			count, url := serveCounterWith(t, func(c *counter) tool.Source { return &pausing{c, func() { pause("call") }} })
			s := newChatLoad(t, model.URL, counterConfig(url))
			s.Env = append(s.Env, "BOOT=1")
			s.Start(t)
			body, _ := json.Marshal(map[string]string{"client_id": "t", "user_id": "ann", "message": "pay", "message_key": "k"})
			sent := make(chan struct{})
			go func() { defer close(sent); s.send(t.Context(), body, "") }()
			<-here
			s.Kill()
			<-sent
			close(proceed)
			s.Start(t)
			answer, text := httpjsontest.Read(t, "POST", s.URL()+"/api/v1/chat", string(body))
			if answer.StatusCode != 200 {
				t.Fatalf("%d %s", answer.StatusCode, text)
			}
			if n := count.callsOf("pay")[1]; n != 1 {
				t.Errorf("paid %d times: %s", n, text)
			}
			if told := strings.Contains(text, "may or may not have happened") && strings.Contains(text, "unknown_outcome"); told != (moment == "call") {
				t.Errorf("killed during the %s: %s", moment, text)
			}
		})
	}
}
