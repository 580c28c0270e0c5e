package llm_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/luanette/luanette/internal/chat/llm"
)

// TestCacheKey checks that OpenAI's own endpoint gets a key that is the same for prompts
// that begin alike, and that other endpoints, which may refuse the field, do not.
func TestCacheKey(t *testing.T) {
	t.Parallel()
	key := func(url string, change func(*llm.Prompt)) string {
		var body []byte
		m, _ := open(t, "openai", url, func(o *llm.Options) {
			o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				body, _ = io.ReadAll(r.Body)
				w := httptest.NewRecorder()
				w.Header().Set("Content-Type", "application/json")
				_, err := w.WriteString(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
				return w.Result(), err
			})
		})
		p := question
		change(&p)
		if _, err := m.Answer(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`"prompt_cache_key":"[0-9a-f]{32}"`).FindString(string(body))
	}
	first := key("", func(*llm.Prompt) {})
	if first == "" {
		t.Error("no key")
	}
	if again := key("", func(p *llm.Prompt) { p.Context, p.Messages = "today is Wednesday", p.Messages[:1] }); again != first {
		t.Error("the key changed with the message")
	}
	if other := key("", func(p *llm.Prompt) { p.System = "be long" }); other == first {
		t.Error("another prompt has the same key")
	}
	if elsewhere := key("http://127.0.0.1:1/v1", func(*llm.Prompt) {}); elsewhere != "" {
		t.Error("another endpoint gets a key")
	}
}

// TestCachedTokens checks that cached tokens are counted once, whichever field has them.
func TestCachedTokens(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]llm.Usage{
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":80}}`:                              {Input: 20, Output: 5, CacheRead: 80},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":80}`:                                              {Input: 20, Output: 5, CacheRead: 80},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":80},"prompt_cache_hit_tokens":80}`: {Input: 20, Output: 5, CacheRead: 80},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":80}}`:                               {Input: 0, Output: 5, CacheRead: 10},
	} {
		m, _ := open(t, "openai", "http://127.0.0.1:1", func(o *llm.Options) {
			o.Model = "local"
			o.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				w.Header().Set("Content-Type", "application/json")
				_, err := w.WriteString(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":` + usage + `}`)
				return w.Result(), err
			})
		})
		answer, err := m.Answer(t.Context(), question, nil)
		if err != nil || answer.Usage != want {
			t.Errorf("%s: %+v, %v", usage, answer.Usage, err)
		}
	}
}

func TestIsPriced(t *testing.T) {
	t.Parallel()
	own := map[string]llm.Price{"qwen3": {Input: 1}}
	for model, want := range map[string]bool{
		"claude-sonnet-5-5": true, "gpt-5": true, "gpt-5-2026-01-01": true, "gpt-5-mini": true, "gpt-5.9": false, "gpt-4.1-mini": true,
		"qwen3": true, "qwen3.5:8b": true, "llama": false, "": false,
	} {
		if got := llm.IsPriced(model, own); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
}
