package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func nodeServer(t *testing.T, program string, args ...string) upstreamtest.Server {
	spec := upstream.Spec{Name: "test", Settings: upstream.Settings{Command: "node", Args: append([]string{npmtest.Program(t, program)}, args...), Wait: duration.Duration(clocktest.Timeout)}}
	return upstreamtest.Server{Spec: spec, Options: options(t)}
}

func TestFilesystemServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := upstreamtest.Start(t, nodeServer(t, "mcp-server-filesystem", dir))
	args, _ := json.Marshal(map[string]string{"path": filepath.Join(dir, "x.txt"), "content": "from far away"})
	h.Text(t, "write_file", args)
	if got, err := os.ReadFile(filepath.Join(dir, "x.txt")); err != nil || string(got) != "from far away" {
		t.Errorf("file = %q, %v", got, err)
	}
	if text := h.Text(t, "read_text_file", args); !strings.Contains(text, "from far away") {
		t.Errorf("read %q", text)
	}
}

func TestMemoryServer(t *testing.T) {
	t.Parallel()
	srv := nodeServer(t, "mcp-server-memory")
	srv.Spec.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	h := upstreamtest.Start(t, srv)
	h.Text(t, "create_entities", json.RawMessage(`{"entities":[{"name":"Ada","entityType":"person","observations":["wrote programs"]}]}`))
	if text := h.Text(t, "search_nodes", json.RawMessage(`{"query":"programs"}`)); !strings.Contains(text, "Ada") {
		t.Errorf("found %q", text)
	}
}

func TestEverythingServer(t *testing.T) {
	t.Parallel()
	for name, newServerUnderTest := range map[string]func(t *testing.T) upstreamtest.Server{
		"stdio": func(t *testing.T) upstreamtest.Server { return nodeServer(t, "mcp-server-everything", "stdio") },
		"http":  func(t *testing.T) upstreamtest.Server { return everythingSite(t, "streamableHttp", "/mcp") },
		"sse":   func(t *testing.T) upstreamtest.Server { return everythingSite(t, "sse", "/sse") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everything(t, upstreamtest.Start(t, newServerUnderTest(t)))
		})
	}
}

// everything uses all features of the reference server.
func everything(t *testing.T, h *upstreamtest.Harness) {
	if text := h.Text(t, "echo", json.RawMessage(`{"message":"hi"}`)); !strings.Contains(text, "hi") {
		t.Errorf("echo said %q", text)
	}
	steps := 0
	caller := &tool.Caller{Progress: func(tool.Progress) { steps++ }}
	long := tool.Call{Ref: ref("trigger-long-running-operation"), Args: json.RawMessage(`{"duration":0.3,"steps":3}`), Caller: caller}
	if _, err := h.Manager.Call(t.Context(), long); err != nil || steps == 0 {
		t.Errorf("long operation: %v after %d steps", err, steps)
	}
	asked := ""
	caller = &tool.Caller{Capabilities: json.RawMessage(`{"sampling":{}}`), Ask: func(_ context.Context, q []tool.Question) ([]json.RawMessage, error) {
		asked = q[0].Method
		return []json.RawMessage{json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"forty-two"}}`)}, nil
	}}
	sample := tool.Call{Ref: ref("trigger-sampling-request"), Args: json.RawMessage(`{"prompt":"?","maxTokens":10}`), Caller: caller}
	result, err := h.Manager.Call(t.Context(), sample)
	if err != nil || asked != wire.MethodSample || !strings.Contains(string(result.Raw), "forty-two") {
		t.Errorf("sampling: %s, %v, asked %q", result.Raw, err, asked)
	}
	peer, _ := h.Manager.Peer("test")
	for _, method := range []string{wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodPromptsList} {
		if _, err := peer.Request(t.Context(), method, nil, nil); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// everythingSite starts the reference server on a port and waits until it listens.
func everythingSite(t *testing.T, mode, path string) upstreamtest.Server {
	program := npmtest.Program(t, "mcp-server-everything")
	port := netguardtest.ReservedPort()
	server := exec.Command("node", program, mode)
	server.Env = append(os.Environ(), "PORT="+port)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), port) {
	}
	go func() {
		for lines.Scan() {
		}
	}()
	return upstreamtest.Server{
		Spec:    upstream.Spec{Name: "test", Settings: upstream.Settings{URL: fmt.Sprintf("http://127.0.0.1:%s%s", port, path), Wait: duration.Duration(clocktest.Timeout)}},
		Options: options(t),
	}
}
