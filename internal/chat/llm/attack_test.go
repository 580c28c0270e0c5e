package llm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
)

// TestAttackModelRedirect has a model's endpoint send us elsewhere, with the key and
// all that was said.
func TestAttackModelRedirect(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			var visited atomic.Bool
			thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Store(true) }))
			trap := httptest.NewServer(http.RedirectHandler(thief.URL, status))
			m, waits := open(t, provider, trap.URL)
			_, err := m.Answer(t.Context(), question, func(llm.Delta) {})
			if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "redirects to") || len(waits.taken) > 0 {
				t.Errorf("%s, %d: %v after %d more tries", provider, status, err, len(waits.taken))
			}
			if visited.Load() {
				t.Errorf("%s, %d: the redirect was followed", provider, status)
			}
			trap.Close()
			thief.Close()
		}
	}
}
