package setup_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/upgrade"
	"github.com/luanette/luanette/internal/mcp/packages/packagestest"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// tides is an MCP server with these tools.
func tides(tools string) map[string]string {
	return map[string]string{"main.js": `#!/usr/bin/env node
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const {id, method} = JSON.parse(line)
  if (id === undefined) return
  const result = {
    initialize: {protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name: 'tides', version: '1'}},
    'tools/list': {tools: [` + tools + `]},
  }[method] || {}
  console.log(JSON.stringify({jsonrpc: '2.0', id, result}))
})`}
}

// withPackage is a service whose configuration has the server tides of npm, installed.
func withPackage(t *testing.T) (*fixture, *packagestest.Registry) {
	t.Helper()
	npm := packagestest.New(t)
	npm.Publish("tides", "1.0.0", map[string]any{"bin": "main.js"}, tides(`{name: 'high', inputSchema: {type: 'object'}}`))
	f := open(t, true)
	env := config.Environment{"PATH": os.Getenv("PATH"), "HOME": f.home}
	f.service.Sources.Env = env
	file := "data = '" + filepath.Join(f.home, "data") + "'\n[upstreams.tides]\ncommand = 'npx'\nargs = ['-y', 'tides']\n" +
		"[upstreams.tides.env]\nnpm_config_registry = '" + npm.URL + "'\nnpm_config_cache = '" + t.TempDir() + "'\n"
	if err := os.WriteFile(f.service.Sources.File, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.LoadOrNew(f.service.Sources)
	if err != nil {
		t.Fatal(err)
	}
	f.service.Current = func() *config.Loaded { return loaded }
	f.service.Connect = func() upstream.Options {
		return upstream.Options{ClientVersion: "test", Getenv: env.Lookup, Environ: env.Pairs}
	}
	specs, _, err := loaded.UpstreamSpecs(env)
	if err != nil {
		t.Fatal(err)
	}
	o := f.service.Connect()
	o.Packages = loaded.Packages(nil, nil)
	if _, err := upgrade.Tools(t.Context(), o, specs[0], 0); err != nil {
		t.Fatal(err)
	}
	return f, npm
}

// versions is what the list says about the package.
func (f *fixture) versions() string {
	f.t.Helper()
	list, _ := f.send(http.StatusOK, "GET", "/api/v1/setup/packages", "")["packages"].([]any)
	if len(list) != 1 {
		f.t.Fatalf("packages: %v", list)
	}
	p, _ := list[0].(map[string]any)
	previous, _ := p["previous"].(string)
	return strings.Join([]string{p["upstream"].(string), p["version"].(string), p["wanted"].(string), previous}, " ")
}

func TestPackagesAreUpgradedAndRolledBack(t *testing.T) {
	t.Parallel()
	f, npm := withPackage(t)
	npm.Publish("tides", "2.0.0", map[string]any{"bin": "main.js"}, tides(`{name: 'high', description: 'When it is highest', inputSchema: {type: 'object'}}, {name: 'low', inputSchema: {type: 'object'}}`))
	if got := f.versions(); got != "tides 1.0.0 2.0.0 " {
		t.Errorf("before: %q", got)
	}
	tried := f.send(http.StatusOK, "POST", "/api/v1/setup/packages/tides/upgrade", `{"dry_run":true}`)
	tools, _ := json.Marshal(tried["tools"])
	if tried["from"] != "1.0.0" || tried["to"] != "2.0.0" || tried["in_effect"] != false || !strings.Contains(string(tools), `"kind":"new","name":"low"`) || !strings.Contains(string(tools), "When it is highest") {
		t.Errorf("tried: %v", tried)
	}
	if got := f.versions(); got != "tides 1.0.0 2.0.0 " {
		t.Errorf("after a dry run: %q", got)
	}
	if done := f.send(http.StatusOK, "POST", "/api/v1/setup/packages/tides/upgrade", `{"to":"2.0.0"}`); done["in_effect"] != true {
		t.Errorf("upgraded: %v", done)
	}
	if got := f.versions(); got != "tides 2.0.0 2.0.0 1.0.0" {
		t.Errorf("upgraded: %q", got)
	}
	if back := f.send(http.StatusOK, "POST", "/api/v1/setup/packages/tides/rollback", ""); back["from"] != "2.0.0" || back["to"] != "1.0.0" {
		t.Errorf("rolled back: %v", back)
	}
	if got := f.versions(); got != "tides 1.0.0 2.0.0 2.0.0" {
		t.Errorf("rolled back: %q", got)
	}
	f.send(http.StatusNotFound, "POST", "/api/v1/setup/packages/other/rollback", "")
	f.service.Programs = false // other versions are installed only where programs may be added
	f.send(http.StatusForbidden, "POST", "/api/v1/setup/packages/tides/upgrade", `{}`)
	f.send(http.StatusForbidden, "POST", "/api/v1/setup/packages/tides/rollback", "")
}
