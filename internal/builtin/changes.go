package builtin

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// configUpdate is the type of events about changed settings; their key is the setting.
const configUpdate = "config.update"

// Changes notifies MCP clients when what they listed or read has changed: the exposed
// tools, the resources about upstreams and jobs, and jobs as tasks.
func Changes(exposed catalog.Exposed, bus *event.Bus) func(notify func(method string, params json.RawMessage)) (stop func()) {
	return func(notify func(string, json.RawMessage)) func() {
		unwatch := exposed.Watch(func() { notify(wire.NoteToolsChanged, nil) })
		ctx, cancel := context.WithCancel(context.Background())
		sub := bus.Subscribe(event.Options{Types: []string{
			"upstream.connecting", "upstream.connected", "upstream.reconnecting", "upstream.failed", "upstream.needs_auth", "upstream.asleep",
			"upstream.tools_refreshed", "upstream.removed", "job.*", configUpdate,
		}, Mode: event.Latest, IncludeRemote: true})
		var work sync.WaitGroup
		work.Go(func() {
			for e := range sub.All(ctx) {
				if about, ok := e.Data.(event.Keyed); ok && strings.HasPrefix(e.Type, "job.") {
					notify(wire.NoteTask, rawjson.SetText(nil, "taskId", about.EventKey()))
				}
				if setting, ok := e.Data.(event.Keyed); ok && e.Type == configUpdate && (setting.EventKey() == "mcp.menu" || setting.EventKey() == "mcp.list_scripts") {
					notify(wire.NoteToolsChanged, nil) // another menu is shown
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

// resourcesAbout lists the resources that an event about an upstream or a job changes.
func resourcesAbout(e event.Event) []string {
	about, ok := e.Data.(event.Keyed)
	if !ok || e.Type == configUpdate || e.Node != "" && !strings.HasPrefix(e.Type, "job.") { // connections are each node's own
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
