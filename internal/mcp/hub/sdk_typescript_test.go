package hub_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/luanette/luanette/internal/base/npmtest"
)

// The clients of the TypeScript SDK, both generations, use the hub over every transport
// and in every mode that they support.
func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	for _, way := range []struct{ name, script, path, argument string }{
		{"client 2 legacy", "client2.js", "/mcp", "legacy"},
		{"client 2 auto", "client2.js", "/mcp", "auto"},
		{"client 2 modern", "client2.js", "/mcp", "modern"},
		{"client 1 http", "client1.js", "/mcp", "http"},
		{"client 1 sse", "client1.js", "/mcp/sse", "sse"},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			dir := npmtest.Modules(t)
			source := protocolTools()
			_, url := serve(t, options(t, source))
			script := filepath.Join("testdata", "typescript", way.script)
			cmd := exec.CommandContext(t.Context(), "node", script, dir, url+way.path, way.argument)
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, complaints.String())
			}
			var got map[string]any
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			want := map[string]any{
				"server":   "test",
				"tools":    []any{"ask", "echo", "fail", "invalid", "panic", "refuse", "report"},
				"echo":     map[string]any{"message": "hello"},
				"report":   "done",
				"progress": []any{0.5, 1.0},
				"ask":      `{"action":"accept","content":{"name":"Ada"}}`,
				"failed":   true,
				"read":     "A",
			}
			if way.argument == "sse" {
				// This client drops progress that arrives in the same packet as the answer.
				delete(got, "progress")
				delete(want, "progress")
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("it saw %s", out)
			}
		})
	}
}
