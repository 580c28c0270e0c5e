package builtin

import (
	"context"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Types of events: changed settings, whose key is the setting, and changed lists of tools.
const (
	configUpdate   = "config.update"
	toolsRefreshed = "upstream.tools_refreshed"
)

// Changes notifies MCP clients when what they listed or read has changed: the exposed
// tools, the resources about upstreams and jobs, and jobs as tasks. Nobody is notified of
// what they cannot see.
func Changes(exposed catalog.Exposed, bus *event.Bus) func(notify hub.Notify) (stop func()) {
	return func(notify hub.Notify) func() {
		unwatch := exposed.Watch(func() { notify(wire.NoteToolsChanged, nil, nil) })
		ctx, cancel := context.WithCancel(context.Background())
		sub := bus.Subscribe(event.Options{Types: []string{
			"upstream.connecting", "upstream.connected", "upstream.reconnecting", "upstream.failed", "upstream.needs_auth", "upstream.asleep",
			toolsRefreshed, "upstream.removed", "job.*", configUpdate,
		}, Mode: event.Latest, IncludeRemote: true})
		var work sync.WaitGroup
		work.Go(func() {
			for e := range sub.All(ctx) {
				if about, ok := e.Data.(event.Keyed); ok && strings.HasPrefix(e.Type, "job.") {
					notify(wire.NoteTask, rawjson.SetText(nil, "taskId", about.EventKey()), e.VisibleTo)
				}
				if setting, ok := e.Data.(event.Keyed); ok && e.Type == configUpdate && (setting.EventKey() == "mcp.menu" || setting.EventKey() == "mcp.list_scripts") {
					notify(wire.NoteToolsChanged, nil, nil) // another menu is shown
				}
				if e.Type == toolsRefreshed {
					notify(wire.NoteToolsChanged, nil, nil) // somebody may have other tools there, while all together stay the same
				}
				for _, uri := range resourcesAbout(e) {
					notify(wire.NoteResourceUpdated, rawjson.SetText(nil, "uri", uri), e.VisibleTo)
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
	shown, org := principal.SplitNamespace(name)
	if org != "" {
		uris = append(uris, "lua://namespaces/"+shown) // for its members
	}
	if e.Type != toolsRefreshed && e.Type != "upstream.removed" {
		return uris
	}
	if org != "" {
		uris = append(uris, "lua://tools/"+shown)
	}
	return append(uris, "lua://tools", "lua://tools/"+name)
}
