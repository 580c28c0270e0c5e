package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// change alters what startup.lua wants of a namespace's tools.
func (u *upstreams) change(ctx context.Context, namespace string, change func(*overlay.Rule)) error {
	u.mu.Lock()
	rule := u.scripted[namespace]
	rule.Tools, rule.Aliases = maps.Clone(rule.Tools), maps.Clone(rule.Aliases)
	change(&rule)
	err := rule.Validate()
	if err == nil {
		if u.scripted == nil {
			u.scripted = map[string]overlay.Rule{}
		}
		u.scripted[namespace] = rule
		u.arranged.SetRule(namespace, u.rules[namespace].Over(rule))
	}
	u.mu.Unlock()
	if err == nil {
		u.catalog.Refresh(ctx)
	}
	return err
}

// Alias shows a tool under another name.
func (s ownersUpstreams) Alias(ctx context.Context, namespace, alias, name string) error {
	return s.all.change(ctx, namespace, func(r *overlay.Rule) {
		if r.Aliases == nil {
			r.Aliases = map[string]string{}
		}
		r.Aliases[alias] = name
	})
}

// Prefer sets the priority of a tool or of a namespace.
func (s ownersUpstreams) Prefer(ctx context.Context, namespace, name string, priority int) error {
	return s.all.change(ctx, namespace, func(r *overlay.Rule) {
		if name == "" {
			r.Priority = priority
			return
		}
		if r.Tools == nil {
			r.Tools = map[string]int{}
		}
		r.Tools[name] = priority
	})
}

// warnings is what somebody should look at in an upstream's settings.
func (u *upstreams) warnings(ctx context.Context, s upstream.Status) []string {
	return slices.Concat(u.catalog.ExposureProblems(ctx, s.Name), s.Mistaken, u.arranged.Problems(s.Name), u.withheld(s.Name))
}

// warn logs them, once each.
func (u *upstreams) warn(ctx context.Context) {
	for _, s := range u.manager.List() {
		warnings := u.warnings(ctx, s)
		u.mu.Lock()
		if u.warned == nil {
			u.warned = map[string][]string{}
		}
		before := u.warned[s.Name]
		u.warned[s.Name] = warnings
		u.mu.Unlock()
		for _, warning := range warnings {
			if !slices.Contains(before, warning) {
				u.log.WarnContext(ctx, "settings of an upstream", "upstream", s.Name, "warning", warning)
			}
		}
	}
}

// setHooks has the hooks of startup.lua asked from now on; nil has none.
func (srv *Server) setHooks(ctx context.Context, hooks *script.Hooks) {
	if hooks == nil {
		return
	}
	srv.upstreams.hooks.Store(hooks)
	if hooks.SeesCalls() {
		srv.catalog.SetHooks(hooks)
	}
	if hooks.SeesTools() {
		srv.upstreams.arranged.SetTransform(hooks.Tools)
	}
	srv.catalog.Refresh(ctx)
}

// watchedPeer is an upstream seen whole whose tools and calls the hooks see too.
// It keeps the upstream's own names.
type watchedPeer struct {
	hub.Peer
	name string
	all  *upstreams
}

// Request relays a request; lists of tools without what the hooks hide.
func (p watchedPeer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	result, err := p.Peer.Request(ctx, method, params, caller)
	if hooks := p.all.hooks.Load(); err != nil || method != wire.MethodToolsList || hooks == nil || !hooks.SeesTools() {
		return result, err
	}
	return p.sift(ctx, result), nil
}

// Call relays a call that is counted, told of and decided about like every other.
func (p watchedPeer) Call(ctx context.Context, call tool.Call, params json.RawMessage) (json.RawMessage, error) {
	seen := p.all.catalog.Relay(ctx, call)
	defer seen.Broken() //nolint:contextcheck // it only counts
	raw, err := p.pass(ctx, call, params)
	if err != nil { // one that was refused has no span that says whose tool it was for
		trace.SpanFromContext(ctx).SetAttributes(attribute.String("mcp.namespace", p.name))
	}
	seen.End(ctx, tool.Result{Raw: raw}, err)
	return raw, err
}

// pass has a call decided about.
func (p watchedPeer) pass(ctx context.Context, call tool.Call, params json.RawMessage) (json.RawMessage, error) {
	if err := p.all.guard.CheckCall(ctx, call.Ref); err != nil {
		p.all.turnedAway(ctx, call, err)
		return nil, err
	}
	info, known := p.all.manager.Find(call.Ref)
	if !known {
		info.Ref = call.Ref // it claims nothing
	}
	result, err := p.all.pass(ctx, &info, call, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		hooks := p.all.hooks.Load()
		if hooks == nil {
			raw, err := p.Peer.Call(ctx, call, params)
			return tool.Result{Raw: raw}, err
		}
		return p.hooked(ctx, hooks, call, params)
	})
	return result.Raw, err
}

// sift takes out of a page of tools what the hooks hide, and words the rest as
// they do.
func (p watchedPeer) sift(ctx context.Context, page json.RawMessage) json.RawMessage {
	raw, _ := rawjson.Get(page, "tools")
	items, _ := rawjson.Items(raw)
	kept := []byte{'['}
	for _, item := range items {
		name, _ := rawjson.GetText(item, "name")
		info, ok := p.all.arranged.ByOriginal(ctx, p.name, name)
		if !ok {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, worded(item, info)...)
	}
	return rawjson.Set(page, "tools", append(kept, ']'))
}

func worded(item json.RawMessage, info tool.Info) json.RawMessage {
	for key, text := range map[string]string{"title": info.Title, "description": info.Description} {
		if was, _ := rawjson.GetText(item, key); was != text {
			item = rawjson.SetText(item, key, text)
		}
	}
	return item
}

// hooked asks the hooks before and after a call.
func (p watchedPeer) hooked(ctx context.Context, hooks *script.Hooks, call tool.Call, params json.RawMessage) (tool.Result, error) {
	if hooks.SeesTools() {
		if _, err := p.all.arranged.OriginalName(ctx, call.Ref); err != nil {
			return tool.Result{}, err
		}
	}
	changed, answer, err := hooks.ToolCall(ctx, call)
	if err != nil {
		return tool.Result{}, err
	}
	if answer != nil {
		return *answer, nil
	}
	if len(changed) > 0 {
		params, call.Args = rawjson.Set(params, "arguments", changed), changed
	}
	raw, err := p.Peer.Call(ctx, call, params)
	return hooks.ToolResult(ctx, call, tool.Result{Raw: raw}, err)
}
