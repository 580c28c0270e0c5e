package main

import (
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/luanette/luanette/internal/mcp/registry/registrytest"
)

// startRegistry implements registry FILE…: it starts a registry with these server.json
// files and makes it the configured one. A name such as deleted.json gives the status.
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: registry FILE…")
	}
	var entries []registrytest.Entry
	for _, name := range args {
		entry := registrytest.Entry{Server: ts.ReadFile(name)}
		entry.Server = strings.ReplaceAll(entry.Server, "$SERVERS", ts.Getenv("SERVERS"))
		for _, status := range []string{"deprecated", "deleted"} {
			if strings.HasPrefix(name, status) {
				entry.Status, entry.Message = status, "use another one"
			}
		}
		entries = append(entries, entry)
	}
	s := registrytest.New(entries...)
	ts.Defer(s.Close)
	ts.Setenv("LUANETTE_REGISTRY_URL", s.URL)
}
