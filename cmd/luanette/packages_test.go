package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/luanette/luanette/internal/mcp/packages/packagestest"
)

// publish implements publish NAME@VERSION: npm finds the package of the folder of that name. The
// first one starts a registry for the story.
func publish(ts *testscript.TestScript, _ bool, args []string) {
	registry := ts.Value(registryKey{}).(*storyRegistry)
	if registry.Registry == nil {
		registry.Registry = packagestest.New(ts.Value(testKey{}).(*testing.T))
		settings := "registry=" + registry.URL + "\ncache=" + ts.MkAbs("npm") + "\n"
		ts.Check(os.WriteFile(ts.MkAbs(".npmrc"), []byte(settings), 0o600))
	}
	name, version, _ := strings.Cut(args[0], "@")
	manifest, files := map[string]any{}, map[string]string{}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, entry := range entries {
		files[entry.Name()] = ts.ReadFile(filepath.Join(args[0], entry.Name()))
	}
	ts.Check(json.Unmarshal([]byte(files["package.json"]), &manifest))
	delete(files, "package.json")
	registry.Publish(name, version, manifest, files)
}

type (
	registryKey   struct{}
	storyRegistry struct{ *packagestest.Registry } // of npm; nil until a story publishes something
)
