package server

import (
	"context"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// connectPeer returns an MCP connection to the server at url.
func connectPeer(t *testing.T, url string) *upstream.Peer {
	t.Helper()
	bus := event.New(event.BusOptions{})
	manager := upstream.New(upstream.Options{ClientName: "test", ClientVersion: "test", Events: bus})
	t.Cleanup(func() { manager.Close(); bus.Close() })
	if err := manager.Add(upstream.Spec{Name: "server", Trusted: true, Settings: upstream.Settings{URL: url + "/mcp", Transport: upstream.HTTP, Timeout: duration.Duration(10 * time.Minute)}}); err != nil {
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
