package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// write puts a luanette.toml into a folder of the test's own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "luanette.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rewrite changes a file as an editor does: a new one takes its place.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// fenced are the blocks of a page that are marked as being of a language.
func fenced(page, language string) (blocks []string) {
	inside := false
	for line := range strings.Lines(page) {
		switch mark := strings.TrimSpace(line); {
		case mark == "```"+language:
			blocks, inside = append(blocks, ""), true
		case mark == "```":
			inside = false
		case inside:
			blocks[len(blocks)-1] += line
		}
	}
	return blocks
}

// connectPeer returns an MCP connection to the server at url.
func connectPeer(t *testing.T, url string) *upstream.Peer {
	t.Helper()
	bus := event.New(event.BusOptions{})
	manager := upstream.New(upstream.Options{ClientName: "test", ClientVersion: "test", Events: bus})
	t.Cleanup(func() { manager.Close(); bus.Close() })
	if err := manager.Add(upstream.Spec{Name: "server", URL: url + "/mcp", Transport: upstream.HTTP, Trusted: true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	manager.Await(ctx, bus, "server", func(s upstream.Status) bool { return s.State == upstream.StateConnected })
	peer, ok := manager.Peer("server")
	if !ok {
		t.Fatal("not connected to " + url)
	}
	return peer
}
