package app

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/catalog"
	"github.com/luanette/luanette/internal/event"
	"github.com/luanette/luanette/internal/wire"
)

// changes tells the hub's clients that what they listed or read of us is another
// now: the exposed tools, and the resources about upstreams.
func changes(exposed catalog.Exposed, bus *event.Bus) func(notify func(method string, params json.RawMessage)) (stop func()) {
	return func(notify func(string, json.RawMessage)) func() {
		unwatch := exposed.Watch(func() { notify(wire.NoteToolsChanged, nil) })
		ctx, cancel := context.WithCancel(context.Background())
		sub := bus.Subscribe(event.Options{Types: []string{
			"upstream.connecting", "upstream.connected", "upstream.reconnecting", "upstream.needs_auth", "upstream.asleep",
			"upstream.tools_refreshed", "upstream.removed",
		}, Mode: event.Latest})
		var work sync.WaitGroup
		work.Go(func() {
			for e := range sub.All(ctx) {
				for _, uri := range resourcesAbout(e) {
					notify(wire.NoteResourceUpdated, wire.SetText(nil, "uri", uri))
				}
			}
		})
		return func() {
			unwatch()
			cancel()
			work.Wait()
			sub.Close()
		}
	}
}

// resourcesAbout are the resources that an event of an upstream makes outdated.
func resourcesAbout(e event.Event) []string {
	about, ok := e.Data.(event.Keyed)
	if !ok {
		return nil
	}
	name := about.EventKey()
	uris := []string{"lua://namespaces", "lua://namespaces/" + name}
	if e.Type == "upstream.tools_refreshed" || e.Type == "upstream.removed" {
		uris = append(uris, "lua://tools", "lua://tools/"+name)
	}
	return uris
}
