package clients

import (
	"bufio"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// TestAgentAsModel uses Luanette as the model of real chat clients: its agent calls a tool
// of an upstream itself, and has the client call one of the client's own.
func TestAgentAsModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		read string // the client's tool that reads a file
		args string // with %s for its path
		ask  []string
	}{
		{"qwen", "read_file", `{"file_path":%q}`, []string{"qwen", "--auth-type", "openai", "--yolo", "-p", "add 20 and 22, and read note.txt"}},
		{"opencode", "read", `{"filePath":%q}`, []string{"opencode", "run", "-m", "luanette/luanette", "add 20 and 22, and read note.txt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t)
			note := filepath.Join(f.home, "work", "note.txt")
			f.write("work/note.txt", "the secret word is marmalade\n")
			model := llmtest.Start(t, func(r llmtest.Request) llmtest.Step { return bothTools(r, c.read, fmt.Sprintf(c.args, note)) })
			url := f.serve(model.URL)
			f.env = append(f.env, "OPENAI_BASE_URL="+url+"/v1", "OPENAI_MODEL=luanette")
			f.write(".config/opencode/opencode.json", fmt.Sprintf(`{
  "provider": { "luanette": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "%s/v1", "apiKey": "x" },
    "models": { "luanette": { "name": "Luanette" } } } },
  "permission": { "*": "allow" }
}
`, url))
			if out := f.run(c.ask...); !strings.Contains(out, "42 and marmalade") {
				t.Errorf("%s says\n%s\nthe model got\n%+v", c.name, out, model.Requests())
			}
		})
	}
}

// bothTools calls a tool of the upstream and one of the client, and then says what both
// returned.
func bothTools(r llmtest.Request, read, args string) llmtest.Step {
	said := ""
	for _, turn := range r.Turns {
		said += turn.Text
	}
	offered := " " + strings.Join(r.Tools, " ") + " "
	switch {
	case strings.Contains(said, toolResult) && strings.Contains(said, "marmalade"):
		return llmtest.Step{Say: []string{"42 and marmalade"}}
	case strings.Contains(offered, " "+read+" ") && strings.Contains(offered, " everything__get-sum "):
		return llmtest.Step{Use: []llmtest.Use{{Name: "everything__get-sum", Input: `{"a":20,"b":22}`}, {Name: read, Input: args}}}
	default: // clients also ask for titles and the like
		return llmtest.Step{Say: []string{"ok"}}
	}
}

// serve starts `luanette serve` with a model, and returns its URL.
func (f fixture) serve(model string) string {
	f.Helper()
	f.env = append(f.env, "LUANETTE_CHAT_BASE_URL="+model, "ANTHROPIC_API_KEY="+llmtest.Key)
	cmd := f.command(f.Context(), "luanette", "serve", "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stderr)
	at := regexp.MustCompile(`is listening on (http://\S+)`)
	for lines.Scan() {
		if found := at.FindStringSubmatch(lines.Text()); found != nil {
			go func() {
				for lines.Scan() { // until it ends
				}
			}()
			return found[1]
		}
	}
	f.Fatal("luanette serve did not start")
	return ""
}
