package server

import (
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// TestUpstreamResourcesNotify checks that clients are notified when a resource about an
// upstream changes.
func TestUpstreamResourcesNotify(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	defer bus.Close()
	notified := make(chan string, 100)
	stop := builtin.Changes(catalog.New(catalog.Options{}).Exposed(), bus)(func(method string, params json.RawMessage, _ func(principal.Principal) bool) {
		if method == wire.NoteResourceUpdated {
			notified <- method + " " + string(params)
		}
	})
	defer stop()
	for _, test := range []struct {
		payload event.Payload
		uris    []string
	}{
		{upstream.Stderr{Upstream: "a", Line: "noise"}, nil},
		{upstream.Reconnecting{Upstream: "a", Attempt: 1}, []string{"lua://namespaces", "lua://namespaces/a"}},
		{upstream.ToolsRefreshed{Upstream: "a"}, []string{"lua://namespaces", "lua://namespaces/a", "lua://tools", "lua://tools/a"}},
	} {
		bus.Publish(test.payload)
		for _, uri := range test.uris {
			if got, want := <-notified, `notifications/resources/updated {"uri":"`+uri+`"}`; got != want {
				t.Errorf("notified of %s, want %s", got, want)
			}
		}
	}
}

// TestUpstreamResourcesExist checks that the resources that notifications name can be
// read.
func TestUpstreamResourcesExist(t *testing.T) {
	t.Parallel()
	_, srv := start(t, config.Sources{})
	if err := srv.upstreams.Add(t.Context(), "a", upstream.Settings{URL: "http://127.0.0.1:1/mcp"}); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{"lua://namespaces", "lua://namespaces/a", "lua://tools", "lua://tools/a"} {
		if _, err := srv.resources().ReadResource(t.Context(), uri, nil); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestMusicResources checks that the resources of the music backend in this process exist
// unless an upstream replaces it.
func TestMusicResources(t *testing.T) {
	t.Parallel()
	for more, exists := range map[string]bool{"": true, "[upstreams.hootenanny]\nurl = \"zmq+tcp://127.0.0.1:1\"\n": false} {
		_, srv := start(t, musicSources(t, &music{}, more))
		if _, err := srv.resources().ReadResource(t.Context(), "hoot://garden", nil); (err == nil) != exists {
			t.Errorf("with %q: %v", more, err)
		}
	}
}
