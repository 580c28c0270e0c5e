package upstream_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/packages/packagestest"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

// serverPackage is a server whose tool is named as its dependency says.
const serverPackage = `#!/usr/bin/env node
const name = require('dep')
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const {id, method} = JSON.parse(line)
  if (id === undefined) return
  const result = {
    initialize: {protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name: 'packed', version: '1'}},
    'tools/list': {tools: [{name, inputSchema: {type: 'object'}}]},
    'tools/call': {content: [{type: 'text', text: process.argv[2] + ' ' + (process.env.npm_config_registry || 'no registry') + ' ' + process.env.KEY}]},
  }[method] || {}
  console.log(JSON.stringify({jsonrpc: '2.0', id, result}))
})
`

// packaged is an upstream whose server is a package of a registry, and what is installed for it.
func packaged(t *testing.T) (*packagestest.Registry, upstreamtest.Server) {
	t.Helper()
	from := packagestest.New(t)
	from.Publish("dep", "1.0.0", nil, map[string]string{"index.js": "module.exports = 'first'"})
	from.Publish("packed", "1.0.0", map[string]any{"bin": "main.js", "dependencies": map[string]any{"dep": "^1.0.0"}}, map[string]string{"main.js": serverPackage})
	o, env := options(t), from.Env(t)
	o.Environ, o.Packages = func() []string { return env }, packages.New(packages.Options{Folder: t.TempDir()})
	return from, upstreamtest.Server{Options: o, Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{
		Command: "npx", Args: []string{"-y", "packed", "word"}, Env: map[string]string{"KEY": "value"}, Cwd: t.TempDir(), Wait: duration.Duration(clocktest.Timeout),
	}}}
}

func TestPackageRunsWithoutNPX(t *testing.T) {
	t.Parallel()
	from, server := packaged(t)
	h := upstreamtest.Start(t, server)
	if text := h.Text(t, "first", nil); text != "word no registry value" {
		t.Errorf("it answers %q", text)
	}
	if st, _ := h.Manager.Status("test"); st.Package != "packed 1.0.0" {
		t.Errorf("status = %+v", st)
	}
	from.Close()
	if err := h.Manager.Restart("test"); err != nil {
		t.Fatal(err)
	}
	if text := h.Text(t, "first", nil); text != "word no registry value" {
		t.Errorf("without the registry it answers %q", text)
	}
}

func TestBrokenPackageIsInstalledAgainOnce(t *testing.T) {
	t.Parallel()
	_, server := packaged(t)
	h := upstreamtest.Start(t, server)
	h.Text(t, "first", nil)
	installed, err := server.Options.Packages.All()
	if err != nil || len(installed) != 1 {
		t.Fatal(installed, err)
	}
	breakIt := func() {
		for _, record := range installed {
			found, _ := filepath.Glob(filepath.Join(server.Options.Packages.Folder(), record.Folder, "node_modules", "dep"))
			if len(found) != 1 || os.RemoveAll(found[0]) != nil {
				t.Fatal("the package has no dependency")
			}
		}
		if err := h.Manager.Restart("test"); err != nil {
			t.Fatal(err)
		}
	}
	breakIt()
	h.Text(t, "first", nil)
	breakIt()
	if err := h.Manager.Refresh(t.Context(), "test"); err == nil || !strings.Contains(err.Error(), "Cannot find module") {
		t.Errorf("the second time: %v", err)
	}
}

func TestMissingRunnerNamesItsPackage(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Environ = func() []string { return []string{"PATH=/nowhere"} }
	m := upstream.New(o)
	t.Cleanup(m.Close)
	if err := m.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{Command: "uvx", Args: []string{"server"}}}); err != nil {
		t.Fatal(err)
	}
	err := m.Refresh(t.Context(), "test")
	if hint := fault.HintOf(err); !strings.Contains(hint, packages.InstallHint("uvx")) || !strings.Contains(err.Error(), "cannot start uvx: executable file not found") {
		t.Errorf("%v; hint %q", err, hint)
	}
}

func TestUpgradedPackageIsStartedAnew(t *testing.T) {
	t.Parallel()
	from, server := packaged(t)
	h := upstreamtest.Start(t, server)
	h.Text(t, "first", nil)
	store := server.Options.Packages
	before, err := store.All()
	if err != nil {
		t.Fatal(err)
	}
	from.Publish("dep", "1.1.0", nil, map[string]string{"index.js": "module.exports = 'second'"})
	launch, err := server.Options.Launch(server.Spec)
	if err != nil {
		t.Fatal(err)
	}
	launch.Request.Start.Install = append(launch.Request.Start.Install, "npm_config_cache="+t.TempDir())
	record, err := store.Upgrade(t.Context(), launch.Request, "", func(string) {})
	if err != nil || store.Use(t.Context(), launch.Request, record) != nil {
		t.Fatal(err)
	}
	now, err := store.All()
	if err != nil {
		t.Fatal(err)
	}
	if changes := h.Manager.SwitchPackages(before, now); len(changes) != 1 || changes[0].Upstream != "test" {
		t.Errorf("changes = %+v", changes)
	}
	h.Await(t, "upstream.upgraded")
	h.Text(t, "second", nil)
	if again := h.Manager.SwitchPackages(now, now); len(again) > 0 {
		t.Errorf("nothing has changed, but %+v", again)
	}
}
