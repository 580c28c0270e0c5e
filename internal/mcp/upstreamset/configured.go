package upstreamset

import (
	"context"
	"maps"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Configure sets the upstreams of the configuration. Upstreams that did not change stay
// connected.
func (u *Set) Configure(specs []upstream.Spec, places map[string]string, rules map[string]overlay.Rule) error {
	configured := map[string]upstream.Spec{}
	for _, spec := range specs {
		configured[spec.Name] = spec
	}
	err := u.apply(func() { u.configured, u.places, u.dropped = configured, places, map[string]bool{} })
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.rules
	u.rules = rules
	for name := range before {
		u.Overlay.SetRule(name, u.rule(name))
	}
	for name := range rules {
		u.Overlay.SetRule(name, u.rule(name))
	}
	return nil
}

// SetUntrusted sets the upstreams of the configuration that are not started, since the
// user does not trust its file yet: what they would do, by name. They are only listed.
func (u *Set) SetUntrusted(names map[string]string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.untrusted = names
}

// SetProblems sets what is wrong with the configuration of upstreams as a whole, such as
// a file that cannot be imported.
func (u *Set) SetProblems(problems []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.problems = problems
}

// Problems returns what SetProblems set.
func (u *Set) Problems() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.problems
}

// Configured returns the upstreams and rules of the configuration.
func (u *Set) Configured() (map[string]upstream.Spec, map[string]overlay.Rule) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.configured), maps.Clone(u.rules)
}

// Edited returns the names of specs that are new or changed.
func (u *Set) Edited(specs []upstream.Spec) (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, spec := range specs {
		if before, ok := u.configured[spec.Name]; !ok || !before.Equal(spec) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// Removed are the upstreams of the configuration that a user removed.
func (u *Set) Removed() map[string]bool {
	names := map[string]bool{}
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.configured {
		if entry := u.entries[name]; entry != nil && entry.Removed {
			names[name] = true
		}
	}
	return names
}

// Unremove brings back upstreams that a user removed, because the configuration asks for
// them again.
func (u *Set) Unremove(ctx context.Context, names []string) error {
	for _, name := range names {
		u.mu.Lock()
		entry := u.entries[name]
		u.mu.Unlock()
		if entry == nil || !entry.Removed {
			continue
		}
		if err := u.update(ctx, name, unremoved); err != nil {
			return err
		}
	}
	return nil
}

// unremoved is the entry without a removal.
func unremoved(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
	if now != nil && now.Removed {
		return nil, nil
	}
	return now, nil
}

// ChangeRule changes the rule of startup.lua for a namespace's tools.
func (u *Set) ChangeRule(ctx context.Context, namespace string, change func(*overlay.Rule)) error {
	u.mu.Lock()
	rule := u.scripted[namespace]
	rule.Tools, rule.Aliases = maps.Clone(rule.Tools), maps.Clone(rule.Aliases)
	change(&rule)
	err := rule.Validate()
	if err == nil {
		u.scripted[namespace] = rule
		u.Overlay.SetRule(namespace, u.rule(namespace))
	}
	u.mu.Unlock()
	if err == nil {
		u.Catalog.Refresh(ctx)
	}
	return err
}
