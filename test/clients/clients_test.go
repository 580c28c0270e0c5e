// Package clients connects real MCP clients from npm to Luanette. `make clients` installs
// and runs them.
package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/npmtest"
)

// fixture is a home folder with the program, one upstream, and a model.
type fixture struct {
	*testing.T
	home, modules string
	model         *model
	env           []string // in addition, of programs that are run
}

func open(t *testing.T) fixture {
	t.Helper()
	modules := os.Getenv("LUANETTE_TEST_CLIENTS")
	if modules == "" {
		t.Skip("`make clients` installs the clients that this test needs, and runs it")
	}
	home := t.TempDir()
	f := fixture{T: t, home: home, modules: modules, model: newModel(t)}
	for _, dir := range []string{"bin", "work"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(home, "bin", "luanette"), "../../cmd/luanette")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f.run("luanette", "upstream", "add", "everything", "--", "node", npmtest.Program(t, "mcp-server-everything"), "stdio")
	return f
}

// run runs a program in the home folder and returns its output.
func (f fixture) run(argv ...string) string {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 3*time.Minute)
	defer cancel()
	out, err := f.command(ctx, argv...).CombinedOutput()
	if err != nil {
		f.Fatalf("%s: %v\n%s\nmodel:\n%s", strings.Join(argv, " "), err, out, f.model.notes())
	}
	return string(out)
}

// command returns a program that runs in the home folder.
func (f fixture) command(ctx context.Context, argv ...string) *exec.Cmd {
	path := argv[0]
	for _, folder := range []string{filepath.Join(f.modules, ".bin"), filepath.Join(f.home, "bin")} {
		if _, err := os.Stat(filepath.Join(folder, argv[0])); err == nil {
			path = filepath.Join(folder, argv[0])
		}
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir = filepath.Join(f.home, "work")
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = []string{
		"HOME=" + f.home, "PATH=" + filepath.Join(f.modules, ".bin") + ":" + filepath.Join(f.home, "bin") + ":" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "CI=1",
		"ANTHROPIC_BASE_URL=" + f.model.URL, "ANTHROPIC_API_KEY=sk-stand-in", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"OPENAI_BASE_URL=" + f.model.URL + "/v1", "OPENAI_API_KEY=sk-stand-in", "OPENAI_MODEL=stand-in",
		"GOOGLE_GEMINI_BASE_URL=" + f.model.URL, "GEMINI_API_KEY=stand-in", "GEMINI_CLI_TRUST_WORKSPACE=true", "OPENCODE_DISABLE_AUTOUPDATE=1",
	}
	cmd.Env = append(cmd.Env, f.env...)
	return cmd
}

func (f fixture) write(path, text string) {
	f.Helper()
	path = filepath.Join(f.home, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
}

// TestClients installs Luanette in each client with its own configuration, asks the client
// whether it is connected, has its model call a tool through Luanette, and uninstalls it.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(f fixture) // configures the stand-in model
		list   []string        // how it lists its servers; nil: it cannot
		want   string          // in what it lists
		ask    []string
	}{
		{name: "claude-code", list: []string{"claude", "mcp", "list"}, want: "Connected",
			ask: []string{"claude", "-p", "add 20 and 22", "--allowedTools", "mcp__luanette__call_tool", "--model", "claude-sonnet-4-5"}},
		{name: "qwen", list: []string{"qwen", "mcp", "list"}, want: "Connected",
			ask: []string{"qwen", "--auth-type", "openai", "--yolo", "-p", "add 20 and 22"}},
		{name: "opencode", list: []string{"opencode", "mcp", "list"}, want: "connected", before: opencodeModel,
			ask: []string{"opencode", "run", "-m", "standin/stand-in", "add 20 and 22"}},
		{name: "gemini", list: []string{"gemini", "mcp", "list"}, want: "Connected", before: geminiTrust,
			ask: []string{"gemini", "--yolo", "-p", "add 20 and 22"}},
		{name: "codex", list: []string{"codex", "mcp", "list"}, want: "enabled", before: codexModel,
			ask: []string{"codex", "exec", "-c", "mcp_servers.luanette.required=true", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "add 20 and 22"}},
		{name: "continue", before: continueModel, ask: []string{"cn", "-p", "--auto", "add 20 and 22"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t)
			if c.before != nil {
				c.before(f)
			}
			f.run("luanette", "install", c.name)
			if c.list != nil {
				if out := f.run(c.list...); !strings.Contains(out, "luanette") || !strings.Contains(out, c.want) {
					t.Errorf("%s lists\n%s", c.name, out)
				}
			}
			out := f.run(c.ask...)
			if !strings.Contains(out, toolResult) {
				t.Errorf("%s did not call the tool; it says\n%s\nmodel:\n%s", c.name, out, f.model.notes())
			}
			f.run("luanette", "uninstall", c.name)
			if out := f.run("luanette", "install", "--json"); strings.Contains(out, `"installed": true`) {
				t.Errorf("it is still installed:\n%s", out)
			}
		})
	}
}

// TestReadingIsAllowed lets each client call call_tool_read without a question, as its users
// do, and checks that this lets no other call through.
func TestReadingIsAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(f fixture)
		ask    []string
	}{
		{name: "claude-code", ask: []string{"claude", "-p", "add 20 and 22", "--allowedTools", "mcp__luanette__call_tool_read", "--model", "claude-sonnet-4-5"}},
		{name: "codex", before: codexModel, ask: []string{"codex", "exec", "-c", "mcp_servers.luanette.required=true", "--skip-git-repo-check", "add 20 and 22"}},
		{name: "gemini", before: geminiTrust, ask: []string{"gemini", "-m", "gemini-2.5-flash", "--allowed-tools", "mcp_luanette_call_tool_read", "-p", "add 20 and 22"}},
		{name: "opencode", before: opencodeReads, ask: []string{"opencode", "run", "-m", "standin/stand-in", "add 20 and 22"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t)
			if c.before != nil {
				c.before(f)
			}
			f.write(".config/luanette/luanette.toml", "read_only_tools = [\"everything.get-sum\"]\n")
			f.run("luanette", "upstream", "add", "everything", "--", "node", npmtest.Program(t, "mcp-server-everything"), "stdio")
			f.run("luanette", "install", c.name)
			for name, allowed := range map[string]bool{"call_tool_read": true, "call_tool": false} {
				f.model.tool = name
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				out, err := f.command(ctx, c.ask...).CombinedOutput()
				cancel()
				if done := strings.Contains(string(out), toolResult); done != allowed {
					t.Errorf("%s with %s: %v\n%s\nmodel:\n%s", c.name, name, err, out, f.model.notes())
				}
			}
		})
	}
}

func opencodeModel(f fixture) { f.opencode(`"*": "allow"`) }

func opencodeReads(f fixture) { f.opencode(`"*": "deny", "luanette_call_tool_read": "allow"`) }

func (f fixture) opencode(permission string) {
	f.write(".config/opencode/opencode.json", fmt.Sprintf(`{
  "provider": { "standin": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "%s/v1", "apiKey": "x" },
    "models": { "stand-in": { "name": "stand-in" } } } },
  "permission": { %s }
}
`, f.model.URL, permission))
}

func continueModel(f fixture) {
	f.write(".continue/config.yaml", fmt.Sprintf(`name: mine
version: 1.0.0
schema: v1
models:
  - name: stand-in
    provider: openai
    model: gpt-4o
    apiBase: %s/v1
    apiKey: x
    roles: [chat]
`, f.model.URL))
}

func geminiTrust(f fixture) {
	f.write(".gemini/trustedFolders.json", fmt.Sprintf(`{ %q: "TRUST_FOLDER" }`, filepath.Join(f.home, "work")))
	f.write(".gemini/settings.json", `{
  // the stand-in needs a key only
  "security": { "auth": { "selectedType": "gemini-api-key" } }
}
`)
}

func codexModel(f fixture) {
	f.write(".codex/config.toml", fmt.Sprintf(`# a stand-in model
model = "stand-in"
model_provider = "standin"

[model_providers.standin]
name = "stand-in"
base_url = "%s/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`, f.model.URL))
}
