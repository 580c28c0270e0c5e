package upstream_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// playReader is a server with a tool that reads files.
func playReader() int {
	s := newServer()
	mcp.AddTool(s, &mcp.Tool{Name: "read"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		content, err := os.ReadFile(in.Text)
		return say(string(content)), nil, err
	})
	if s.Run(context.Background(), &mcp.StdioTransport{}) != nil {
		return 1
	}
	return 0
}

// What the sandbox refuses is said in the error of the tool that failed, with the setting
// that would allow it, also when the tool fails again.
func TestRefusalIsInTheErrorOfTheTool(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("/var/tmp", "luanette-refusal-") //nolint:usetesting // the program has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	key := filepath.Join(folder, "id_ed25519")
	if err := os.WriteFile(key, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := stdioServer(t, stdioSpec(t, "reader"))
	srv.Options.Sandbox = &launch.Launcher{Folder: t.TempDir(), Home: folder}
	srv.Spec.Profile = profile.Profile{Level: profile.Open}
	srv.Options.Sandbox.Hide = []string{key}
	if missing := srv.Options.Sandbox.Support().Missing(); len(missing) > 0 {
		t.Skip(missing)
	}
	h := upstreamtest.Start(t, srv)
	args, _ := json.Marshal(text{key})
	read := func() string {
		result, err := h.Manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: h.Name, Name: "read"}, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		return string(result.Raw)
	}
	want := "sandbox: test was refused read of " + key + "; this setting of the server would allow it: read = "
	clocktest.Await(t, func() bool { return strings.Contains(read(), want) }) // the report may come behind the first answer
	if again := read(); strings.Count(again, want) != 1 || !strings.Contains(again, "permission denied") {
		t.Error(again)
	}
}
