package main

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// TestChatInterrupted presses Ctrl-C in the real `luanette chat` while the model speaks: the
// answer ends, what was said is part of the conversation, and the command goes on; with an
// agent of its own and with that of a server.
func TestChatInterrupted(t *testing.T) {
	t.Parallel()
	for name, ofServer := range map[string]bool{"own agent": false, "agent of a server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold := make(chan struct{})
			ended := make(chan struct{})
			model := llmtest.New(func(r llmtest.Request) llmtest.Step {
				if len(r.Turns) == 1 {
					return llmtest.Step{Say: []string{"so far so good", " and never this"}, Hold: hold, HoldText: true, Ended: func() { close(ended) }}
				}
				return llmtest.Step{Say: []string{"before I said: " + r.Turns[1].Text}}
			})
			t.Cleanup(model.Close)
			t.Cleanup(func() { close(hold) })
			s := programtest.New(t, "")
			s.Env = []string{"TERM=xterm-256color", "LUANETTE_CHAT_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=" + llmtest.Key}
			args := []string{"chat"}
			if ofServer {
				s.Start(t)
				args = append(args, "--server", s.URL())
			}
			w := onTerminal(t, s.Command(t.Context(), args...), 100, 30)
			w.awaitText("you>")
			w.press("tell me a long story\r")
			w.awaitText("so far so good")
			w.press("\x03")
			w.awaitText("the answer was stopped")
			<-ended
			w.press("what did you say?\r")
			w.awaitText("before I said: so far so good")
			w.press("/quit\r")
			if err := w.wait(); err != nil {
				t.Errorf("exit: %v", err)
			}
			if strings.Contains(w.raw.String(), "never this") {
				t.Error("the answer went on")
			}
		})
	}
}
