package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
)

// What others see of a keeper, and what they may change without reconnecting.

// status is how the upstream is just now.
func (k *keeper) status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := Status{
		Name: k.name, Target: k.spec.Target(), Generation: k.generation,
		State: k.state, Since: k.since,
		Transport: k.verdict.Way.Transport, Revision: k.known.Revision, ServerInfo: k.known.ServerInfo,
		Tools: len(k.visible()), Stale: k.stale, Dropped: slices.Clone(k.list.dropped),
		Stats: k.stats, Desired: k.spec.clone(), Mistaken: k.mistaken(),
	}
	if k.verdict.Era != 0 {
		st.Era = k.verdict.Era.String()
	}
	if k.state != StateConnected {
		st.Attempt, st.NextTry = k.attempt, k.next
		if k.err != nil {
			st.LastError = k.err.Error()
		}
	}
	if k.state == StateNeedsAuth {
		st.Challenge = k.challenge
		st.Hint = fault.HintOf(k.wanting(k.err, k.challenge))
	}
	return st
}

// tools lists what exists for us, in the order of names.
//
// The slice stays the same until something changed, so that readers of many tools
// can tell at a glance.
func (k *keeper) tools() []tool.Info {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shown.of == k.list && k.shown.stale == k.stale {
		return k.shown.tools
	}
	tools := k.visible()
	if k.stale {
		tools = slices.Clone(tools)
		for i := range tools {
			tools[i].Stale = true
		}
	}
	k.shown = showing{of: k.list, stale: k.stale, tools: tools}
	return tools
}

// showing is the list as readers see it, and what it was made of.
type showing struct {
	of    *listing
	stale bool
	tools []tool.Info
}

// visible is the list without what the spec forbids; k.mu is held.
func (k *keeper) visible() []tool.Info {
	if len(k.spec.AllowedTools)+len(k.spec.DisabledTools) == 0 && !k.spec.ReadOnly {
		return k.list.tools
	}
	var visible []tool.Info
	for _, info := range k.list.tools {
		if k.spec.permits(info.Name) && (!k.spec.ReadOnly || info.Hints.ReadOnly) {
			visible = append(visible, info)
		}
	}
	return visible
}

// mistaken finds names in the spec that no tool has; k.mu is held.
func (k *keeper) mistaken() []string {
	if len(k.spec.AllowedTools)+len(k.spec.DisabledTools) == 0 || len(k.list.tools) == 0 {
		return nil
	}
	names := make([]string, len(k.list.tools))
	for i := range k.list.tools {
		names[i] = k.list.tools[i].Name
	}
	var found []string
	for _, setting := range []struct {
		name string
		list []string
	}{{"allowed_tools", k.spec.AllowedTools}, {"disabled_tools", k.spec.DisabledTools}} {
		for _, name := range setting.list {
			if slices.Contains(names, name) {
				continue
			}
			problem := fmt.Sprintf("%s: it has no tool %q", setting.name, name)
			if near := suggest.Names(name, names, 1); len(near) > 0 {
				problem += fmt.Sprintf("; did you mean %s?", near[0])
			}
			found = append(found, problem)
		}
	}
	return found
}

// adjust takes over what of a spec matters between calls.
func (k *keeper) adjust(spec Spec) {
	k.mu.Lock()
	before := k.visible()
	k.spec, k.shown = spec, showing{}
	after := k.visible()
	k.mu.Unlock()
	added, removed, _ := diff(before, after)
	if len(added)+len(removed) > 0 {
		k.publish(ToolsRefreshed{Upstream: k.name, ToolCount: len(after), Added: added, Removed: removed})
	}
}

// inherit takes over from the keeper of the generation before what callers have
// asked for, and, when the server is the same, what is known of it.
func (k *keeper) inherit(old *keeper) {
	old.mu.Lock()
	stats, follows, level := old.stats, maps.Clone(old.follows), old.level
	same, found, known, list, sound := old.spec.sameServer(k.currentSpec()), old.verdict, old.known, old.list, old.sound
	old.mu.Unlock()
	k.change(func() {
		stats.InFlight = 0
		k.stats, k.follows, k.level = stats, follows, level
		if same && k.session == nil {
			k.verdict, k.known, k.list, k.stale, k.sound = found, known, list, true, sound
		}
	})
}

// watch sets or, with nil, removes a watcher.
func (k *keeper) watch(id int, f func(string, json.RawMessage)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f == nil {
		delete(k.watchers, id)
		return
	}
	k.watchers[id] = f
}
