package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// changes tells the hub's clients that what they listed or read of us is another
// now: the exposed tools, the resources about upstreams and jobs, and the tasks
// that jobs are.
func changes(exposed catalog.Exposed, bus *event.Bus) func(notify func(method string, params json.RawMessage)) (stop func()) {
	return func(notify func(string, json.RawMessage)) func() {
		unwatch := exposed.Watch(func() { notify(wire.NoteToolsChanged, nil) })
		ctx, cancel := context.WithCancel(context.Background())
		sub := bus.Subscribe(event.Options{Types: []string{
			"upstream.connecting", "upstream.connected", "upstream.reconnecting", "upstream.needs_auth", "upstream.asleep",
			"upstream.tools_refreshed", "upstream.removed", "job.*", config.Updated{}.EventType(),
		}, Mode: event.Latest, IncludeRemote: true})
		var work sync.WaitGroup
		work.Go(func() {
			for e := range sub.All(ctx) {
				if about, ok := e.Data.(event.Keyed); ok && strings.HasPrefix(e.Type, "job.") {
					notify(wire.NoteTask, rawjson.SetText(nil, "taskId", about.EventKey()))
				}
				if set, ok := e.Data.(config.Updated); ok && (set.Key == "mcp.mode" || set.Key == "mcp.code_threshold") {
					notify(wire.NoteToolsChanged, nil) // the menu is another
				}
				for _, uri := range resourcesAbout(e) {
					notify(wire.NoteResourceUpdated, rawjson.SetText(nil, "uri", uri))
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

// resourcesAbout are the resources that an event of an upstream or a job makes
// outdated.
func resourcesAbout(e event.Event) []string {
	about, ok := e.Data.(event.Keyed)
	if !ok || e.Type == (config.Updated{}).EventType() || e.Node != "" && !strings.HasPrefix(e.Type, "job.") { // connections are each node's own
		return nil
	}
	name := about.EventKey()
	if strings.HasPrefix(e.Type, "job.") {
		return []string{"lua://jobs", "lua://jobs/stats", "lua://jobs/" + name}
	}
	uris := []string{"lua://namespaces", "lua://namespaces/" + name}
	if e.Type == "upstream.tools_refreshed" || e.Type == "upstream.removed" {
		uris = append(uris, "lua://tools", "lua://tools/"+name)
	}
	return uris
}
