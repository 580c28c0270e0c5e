package upstreamset

import (
	"context"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// ChangeRule changes the rule of startup.lua for a namespace's tools.
func (u *Set) ChangeRule(ctx context.Context, namespace string, change func(*overlay.Rule)) error {
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
		u.Overlay.SetRule(namespace, u.rules[namespace].Over(rule))
	}
	u.mu.Unlock()
	if err == nil {
		u.catalog.Refresh(ctx)
	}
	return err
}

// warnings are problems with an upstream's settings.
func (u *Set) warnings(ctx context.Context, s upstream.Status) []string {
	return slices.Concat(u.catalog.ExposureProblems(ctx, s.Name), s.Mistaken, u.Overlay.Problems(s.Name), u.Warnings(s.Name))
}

// warn logs the warnings, once each.
func (u *Set) warn(ctx context.Context) {
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
				u.Log.WarnContext(ctx, "settings of an upstream", "upstream", s.Name, "warning", warning)
			}
		}
	}
}
