package openaiapi_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/chat/openaiapi"
	"github.com/luanette/luanette/internal/core/principal"
)

// TestOpenAILibrary uses the API through OpenAI's own library for JavaScript.
func TestOpenAILibrary(t *testing.T) {
	t.Parallel()
	modules := npmtest.Modules(t)
	if _, err := os.Stat(filepath.Join(modules, "openai")); err != nil {
		t.Fatalf("`make servers` installs openai: %v", err)
	}
	var failures atomic.Int32
	model := llmtest.Start(t, func(r llmtest.Request) llmtest.Step { return libraryModel(r, &failures) })
	f := playModel(t, "anthropic", model, openaiapi.Options{},
		apikey.Key{Name: "web", Hash: apikey.HashOf("web-key"), Fixed: true, Rights: apikey.Rights{Scopes: []principal.Scope{principal.Chat}}})
	script := exec.CommandContext(t.Context(), npmtest.Program(t, "node"), "testdata/openai.cjs")
	script.Env = []string{"NODE_PATH=" + modules, "API=" + f.url, "KEY=web-key", "PATH=" + os.Getenv("PATH")}
	out, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	has(t, string(out), `"models":["luanette"]`, `"model":"luanette"`, `"whole":"Let me look.\nIt is noon."`, `"tokens":true`,
		`"pieces":["","Let me look.","\nIt is noon.","stop","usage"]`,
		`"tools":"sunny in Bern at noon"`, `"streamedTools":"sunny in Bern at noon"`,
		`"seen":"I see 1 image."`, `"drawn":["Here is 1 image.",true]`, `"streamedImages":1`, `"remote":["BadRequestError",400,"messages"]`,
		`"noModel":["NotFoundError",404,"model_not_found","model"]`,
		`"wrongKey":["AuthenticationError",401,"invalid_api_key","invalid_request_error"]`,
		`"failed":["InternalServerError",502,"model_key_refused"]`)
	if n := failures.Load(); n != 1 {
		t.Errorf("the library sent a request for which a tool was called %d times", n)
	}
}

// libraryModel calls our tool first, then the client's if it has one, and then answers.
func libraryModel(r llmtest.Request, failures *atomic.Int32) llmtest.Step {
	said := ""
	for _, turn := range r.Turns {
		said += turn.Text + "\n"
	}
	switch {
	case strings.Contains(said, "this picture"):
		return llmtest.Step{Say: []string{fmt.Sprintf("I see %d image.", len(r.Media))}}
	case strings.Contains(said, "draw") && len(r.Media) == 0:
		return llmtest.Step{Use: []llmtest.Use{{Name: "clock__face", Input: `{}`}}}
	case strings.Contains(said, "draw"):
		return llmtest.Step{Say: []string{fmt.Sprintf("Here is %d image.", len(r.Media))}}
	case strings.Contains(said, "fail after a call") && strings.Contains(said, "noon"):
		failures.Add(1)
		return llmtest.Step{Status: http.StatusUnauthorized, Kind: "authentication_error", Text: "no"}
	case strings.Contains(said, "sunny in Bern"):
		return llmtest.Step{Expect: []string{"noon"}, Say: []string{"sunny in Bern at noon"}}
	case strings.Contains(said, "weather"):
		return llmtest.Step{Use: []llmtest.Use{{Name: "clock__now", Input: `{}`}, {Name: "weather", Input: `{"city":"Bern"}`}}}
	case strings.Contains(said, "noon"):
		return llmtest.Step{Say: []string{"It is noon."}}
	default:
		return llmtest.Step{Say: []string{"Let me look."}, Use: []llmtest.Use{{Name: "clock__now", Input: `{}`}}}
	}
}
