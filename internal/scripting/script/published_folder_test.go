package script

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p publishFixture) names(t *testing.T) string {
	t.Helper()
	tools, err := p.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range tools {
		names = append(names, info.Name)
	}
	return strings.Join(names, " ")
}

func TestFolder(t *testing.T) {
	t.Parallel()
	data, dir, d := t.TempDir(), t.TempDir(), newSourceStore()
	p := openPublished(t, data, d)
	var log strings.Builder
	f := NewFolder(dir, p.Published, d, slog.New(slog.NewTextHandler(&log, nil)))
	sync := func(want string) {
		t.Helper()
		if err := f.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.names(t); got != want {
			t.Errorf("published %q, want %q", got, want)
		}
	}
	file := filepath.Join(dir, "greet.lua")

	sync("")
	save(t, file, named("greet", "one"))
	save(t, filepath.Join(dir, "notes.txt"), "not a script")
	sync("greet")

	save(t, file, named("greet", "two"))
	sync("greet")
	if got := p.call(t, "greet", "{}"); string(got.Structured) != `{"answer":"two","n":1}` {
		t.Errorf("after a save greet = %s", got.Structured)
	}
	if parent := d.parents[cas.Sum([]byte(named("greet", "two")))]; parent != cas.Sum([]byte(named("greet", "one"))) {
		t.Errorf("the new version comes from %s", parent.Short())
	}

	save(t, file, "function describe( oops")
	sync("greet")
	sync("greet")
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || f.Problems()["greet.lua"] == nil {
		t.Errorf("%d warnings, problems %v:\n%s", n, f.Problems(), &log)
	}
	if got := p.call(t, "greet", "{}"); string(got.Structured) != `{"answer":"two","n":1}` {
		t.Errorf("with a broken file greet = %s", got.Structured)
	}

	save(t, file, named("welcome", "three"))
	sync("welcome")
	if len(f.Problems()) != 0 {
		t.Errorf("problems remain: %v", f.Problems())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	sync("")
}

func TestFolderAfterARestart(t *testing.T) {
	t.Parallel()
	data, dir, d := t.TempDir(), t.TempDir(), newSourceStore()
	quiet := slog.New(slog.DiscardHandler)
	for _, name := range []string{"unchanged", "removed", "broken"} {
		save(t, filepath.Join(dir, name+".lua"), named(name, name))
	}
	p := openPublished(t, data, d)
	if err := NewFolder(dir, p.Published, d, quiet).Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.publish(t, named("by_hand", "x"), "")

	save(t, filepath.Join(dir, "broken.lua"), "function describe( oops")
	if err := os.Remove(filepath.Join(dir, "removed.lua")); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(dir, "taken.lua"), named("by_hand", "file"))
	again := openPublished(t, data, d)
	f := NewFolder(dir, again.Published, d, quiet)
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := again.names(t); got != "broken by_hand unchanged" {
		t.Errorf("published %q", got)
	}
	if got := again.call(t, "by_hand", "{}"); string(got.Structured) != `{"answer":"x","n":1}` {
		t.Errorf("by_hand = %s", got.Structured)
	}
	if f.Problems()["taken.lua"] == nil {
		t.Error("a file took a name that was published by hand")
	}
}

// commander is a connection manager that starts programs.
type commander struct {
	upstreamManager
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
	r := newRunner(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	up := &commander{}
	if r.Startup(t.Context(), path, up) != nil {
		t.Error("a file that is not there was run")
	}
	save(t, path, `tools.mcp_add("web", "http://127.0.0.1:9")
		function startup()
		  tools.mcp_add("git", { command = "mcp-git", args = { "-v", "." }, env = { A = "b" } })
		  tools.mcp_add("net", { url = "http://127.0.0.1:10" })
		end`)
	if r.Startup(t.Context(), path, up) == nil || log.Len() != 0 {
		t.Errorf("log = %s", &log)
	}
	if names := []string{up.known[0].Name, up.known[1].Name}; !slices.Equal(names, []string{"net", "web"}) || !slices.Equal(up.commands, []string{"git: mcp-git -v .b"}) {
		t.Errorf("added %v and %q", up.known, up.commands)
	}

	save(t, path, "print('good morning') local x = nil\nx.y = 1")
	r.Startup(t.Context(), path, up)
	if got := log.String(); !strings.Contains(got, "good morning") || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "[Lua] startup.lua:2") {
		t.Errorf("log = %s", got)
	}
}

// arranger is a connection manager that stores aliases and priorities.
type arranger struct {
	upstreamManager
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
	r := newRunner(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	up := &arranger{}
	save(t, path, `tools.alias_tool("read", "files:read_file")
		tools.alias_tool("see", "files.list")
		tools.set_tool_priority { files = 3, ["git:status"] = -2, search = "web" }
		assert(not pcall(tools.alias_tool, "all", "files"))
		local ok, problem = pcall(tools.set_tool_priority, { files = 1.5 })
		assert(not ok and tostring(problem):find("files: 1.5 is neither a whole number nor a namespace", 1, true))`)
	r.Startup(t.Context(), path, up)
	want := []string{"files: read is read_file", "files: see is list", "files.: 3", "git.status: -2", "web.search: 10"}
	if !slices.Equal(up.rules, want) || log.Len() != 0 {
		t.Errorf("rules %q, want %q; log %s", up.rules, want, &log)
	}
}

func TestOnlyStartupStartsPrograms(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(o *Options) { o.Upstreams = &upstreamManager{} })
	_, err := r.Run(t.Context(), Request{Source: `tools.mcp_add("git", { command = "mcp-git" })`})
	if err == nil || !strings.Contains(err.Error(), "only startup.lua may add programs") {
		t.Errorf("err = %v", err)
	}
}
