package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// TestCommandsInASandbox runs a program that reads and writes a folder, with and without
// being allowed to.
func TestCommandsInASandbox(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("/var/tmp", "luanette-command-") //nolint:usetesting // t.TempDir is in /tmp, of which a sandbox has its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	folder := filepath.Join(base, "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "a"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	launcher := &launch.Launcher{Folder: filepath.Join(base, "private"), Home: filepath.Join(base, "home")}
	if missing := launcher.Support().Missing(); len(missing) > 0 {
		t.Skipf("the sandbox is incomplete here: %v", missing)
	}
	tool := func(p profile.Profile) api.CommandTool {
		p.Name = "commands.x"
		return api.CommandTool{Args: line("sh", "-c", `cat "$0/a" && echo x > "$0/b"`, "{{folder}}"), Sandbox: p}
	}
	commands := openWith(t, launcher, map[string]api.CommandTool{
		"off":     tool(profile.Profile{}),
		"open":    tool(profile.Profile{Level: profile.Open}),
		"strict":  tool(profile.Profile{Level: profile.Strict}),
		"read":    tool(profile.Profile{Level: profile.Strict, Read: []string{folder}}),
		"written": tool(profile.Profile{Level: profile.Strict, Write: []string{folder}}),
	})
	for name, want := range map[string]string{
		"off": "hello", "written": "hello",
		"open":   "sandbox: commands.x was refused write of " + folder + "/b; to allow it: write = [",
		"strict": "sandbox: commands.x was refused read of " + folder + "/a; to allow it: read = [",
		"read":   "refused write of " + folder + "/b",
	} {
		result, err := call(t.Context(), commands, name, `{"folder":"`+folder+`"}`)
		if err != nil || !strings.Contains(result, want) {
			t.Errorf("%s: %q %v", name, result, err)
		}
	}
	if _, err := call(t.Context(), openWith(t, nil, map[string]api.CommandTool{"x": tool(profile.Profile{Level: profile.Open})}), "x", `{"folder":"/"}`); err == nil {
		t.Error("a command with a sandbox ran without")
	}
}
