package startup

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
)

// TestMain sets limits that a correct script does not reach even on a slow machine.
func TestMain(m *testing.M) {
	maxWait = clocktest.Timeout
	os.Exit(m.Run())
}

// newRunner returns a runner with a few in-process tools.
func newRunner(t testing.TB, change func(*script.Options)) *script.Runner {
	t.Helper()
	o := script.Options{
		Tools: scripttest.Calc{}, Events: event.New(event.BusOptions{}), Log: slog.New(slog.DiscardHandler),
		Tracer: tracenoop.NewTracerProvider().Tracer(""), Meter: noop.NewMeterProvider().Meter(""),
		Clock: clock.Real(), TempDir: t.TempDir(),
	}
	if change != nil {
		change(&o)
	}
	return script.NewRunner(o)
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commander is a connection manager that starts programs.
type commander struct {
	scripttest.Upstreams
	commands []string
}

func (c *commander) AddCommand(_ context.Context, name string, command host.Command) error {
	c.commands = append(c.commands, name+": "+command.Command+" "+strings.Join(command.Args, " ")+command.Env["A"])
	return nil
}

func TestStartup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "startup.lua")
	var log strings.Builder
	up := &commander{}
	if Run(t.Context(), newRunner(t, nil), path, Options{Upstreams: up, Log: slog.New(slog.NewTextHandler(&log, nil))}) != nil {
		t.Error("a file that is not there was run")
	}
	if !strings.Contains(log.String(), "no such file") {
		t.Errorf("log of a missing file = %s", &log)
	}
	log.Reset()
	save(t, path, `tools.mcp_add("web", "http://127.0.0.1:9")
		function startup()
		  tools.mcp_add("git", { command = "mcp-git", args = { "-v", "." }, env = { A = "b" } })
		  tools.mcp_add("net", { url = "http://127.0.0.1:10" })
		end`)
	if Run(t.Context(), newRunner(t, nil), path, Options{Upstreams: up, Log: slog.New(slog.NewTextHandler(&log, nil))}) == nil || log.Len() != 0 {
		t.Errorf("log = %s", &log)
	}
	if names := []string{up.Known[0].Name, up.Known[1].Name}; !slices.Equal(names, []string{"net", "web"}) || !slices.Equal(up.commands, []string{"git: mcp-git -v .b"}) {
		t.Errorf("added %v and %q", up.Known, up.commands)
	}

	save(t, path, "print('good morning') local x = nil\nx.y = 1")
	Run(t.Context(), newRunner(t, nil), path, Options{Upstreams: up, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if got := log.String(); !strings.Contains(got, "good morning") || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "[Lua] startup.lua:2") {
		t.Errorf("log = %s", got)
	}
}

// arranger is a connection manager that stores aliases and priorities.
type arranger struct {
	scripttest.Upstreams
	rules []string
}

func (a *arranger) Alias(_ context.Context, namespace, alias, name string) error {
	a.rules = append(a.rules, fmt.Sprintf("%s: %s is %s", namespace, alias, name))
	return nil
}

func (a *arranger) Prefer(_ context.Context, namespace, name string, priority int) error {
	a.rules = append(a.rules, fmt.Sprintf("%s.%s: %d", namespace, name, priority))
	return nil
}

func TestStartupArrangesTools(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "startup.lua")
	var log strings.Builder
	up := &arranger{}
	save(t, path, `tools.alias_tool("read", "files:read_file")
		tools.alias_tool("see", "files.list")
		tools.set_tool_priority { files = 3, ["git:status"] = -2, search = "web" }
		assert(not pcall(tools.alias_tool, "all", "files"))
		local ok, problem = pcall(tools.set_tool_priority, { files = 1.5 })
		assert(not ok and tostring(problem):find("files: 1.5 is neither a whole number nor a namespace", 1, true))`)
	Run(t.Context(), newRunner(t, nil), path, Options{Upstreams: up, Log: slog.New(slog.NewTextHandler(&log, nil))})
	want := []string{"files: read is read_file", "files: see is list", "files.: 3", "git.status: -2", "web.search: 10"}
	if !slices.Equal(up.rules, want) || log.Len() != 0 {
		t.Errorf("rules %q, want %q; log %s", up.rules, want, &log)
	}
}
