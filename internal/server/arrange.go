package server

import (
	"context"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// change changes the rule of startup.lua for a namespace's tools.
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
		u.overlay.SetRule(namespace, u.rules[namespace].Over(rule))
	}
	u.mu.Unlock()
	if err == nil {
		u.catalog.Refresh(ctx)
	}
	return err
}

// Alias gives a tool another name.
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

// warnings are problems with an upstream's settings.
func (u *upstreams) warnings(ctx context.Context, s upstream.Status) []string {
	return slices.Concat(u.catalog.ExposureProblems(ctx, s.Name), s.Mistaken, u.overlay.Problems(s.Name), u.awaitingReview(s.Name))
}

// warn logs the warnings, once each.
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

// setHooks sets the hooks of startup.lua; nil changes nothing.
func (srv *Server) setHooks(ctx context.Context, hooks *script.Hooks) {
	if hooks == nil {
		return
	}
	srv.upstreams.hooks.Store(hooks)
	if hooks.SeesCalls() {
		srv.catalog.SetHooks(hooks)
	}
	if hooks.SeesTools() {
		srv.upstreams.overlay.SetTransform(hooks.Tools)
	}
	srv.catalog.Refresh(ctx)
}
