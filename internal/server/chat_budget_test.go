package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestChatBudgetUsedUp checks what both chat APIs answer when a budget is used up, whole dollars
// or not, with the server's own agent.
func TestChatBudgetUsedUp(t *testing.T) {
	t.Parallel()
	for _, dollars := range []float64{0.05, 1} {
		t.Run(fmt.Sprint(dollars), func(t *testing.T) {
			t.Parallel()
			model := llmtest.Start(t, func(llmtest.Request) llmtest.Step {
				t.Error("the model was asked")
				return llmtest.Step{Say: []string{"yes"}}
			})
			url, srv := start(t, config.Sources{
				File: configtest.WriteFile(t, fmt.Sprintf("[chat]\nbase_url = %q\n[chat.budget]\ndaily_usd = %v\n", model.URL, dollars)),
				Env:  config.Environment{"ANTHROPIC_API_KEY": llmtest.Key},
			})
			if err := srv.spending.Spend(t.Context(), agent.Spender{User: "bea", Turn: "before"}, "a model", llm.Usage{Cost: 1.01}); err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]struct{ body, code string }{
				"/api/v1/chat":         {`{"client_id":"c","user_id":"anna","message":"hello"}`, `"BUDGET_EXCEEDED"`},
				"/v1/chat/completions": {`{"model":"luanette","messages":[{"role":"user","content":"hello"}]}`, `"insufficient_quota"`},
			} {
				answer, text := httpjsontest.Read(t, http.MethodPost, url+path, want.body)
				if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, want.code) {
					t.Errorf("%s: %d, Retry-After %q: %s", path, answer.StatusCode, answer.Header.Get("Retry-After"), text)
				}
			}
		})
	}
}
