package main

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// TestChatShowsToolCalls asks the real `luanette chat` something that needs a tool, with an
// agent of its own and with that of a server: both show the calls with their duration.
func TestChatShowsToolCalls(t *testing.T) {
	t.Parallel()
	for name, ofServer := range map[string]bool{"own agent": false, "agent of a server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := llmtest.New(func(r llmtest.Request) llmtest.Step {
				if len(r.Turns) == 1 {
					return llmtest.Step{Use: []llmtest.Use{{Name: "lua_eval", Input: `{"code":"return 6 * 7"}`}, {Name: "no__tool", Input: `{}`}}}
				}
				return llmtest.Step{Say: []string{"It is 42."}}
			})
			t.Cleanup(model.Close)
			s := programtest.New(t, "")
			s.Env = []string{"LUANETTE_CHAT_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=" + llmtest.Key}
			args := []string{"chat", "--once", "what is 6 times 7?"}
			if ofServer {
				s.Start(t)
				args = append(args, "--server", s.URL())
			}
			out, err := s.Command(t.Context(), args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{`→ lua_eval {"code":"return 6 * 7"}`, "✓ lua_eval (", "→ no__tool {}", "✗ no__tool (", "It is 42."} {
				if !strings.Contains(string(out), want) {
					t.Errorf("lacks %q:\n%s", want, out)
				}
			}
		})
	}
}
