package upstreamset

import (
	"context"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// ToolSettings say which tools of an upstream exist, what they are called, and which of
// them clients see.
type ToolSettings struct {
	Disabled []string          // by the upstream's names
	Aliases  map[string]string // new names, and the upstream's names they stand for
	Expose   []string          // what clients see directly; upstream.ExposeAll is all
}

// ToolSettings returns the settings of an upstream's tools; configured says that they are
// those of the configuration.
func (u *Set) ToolSettings(name string) (s ToolSettings, configured bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var spec upstream.Spec
	origin, _ := u.origin(name)
	switch origin {
	case originConfig:
		spec = u.configured[name]
	case OriginAdded:
		spec = specOf(name, u.entries[name].Server)
	case originStartup:
		return s, false, fault.New(fault.Conflict, "upstream %s is added by startup.lua", name).WithHint("change it there, and restart")
	default:
		return s, false, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` lists them")
	}
	return ToolSettings{slices.Clone(spec.DisabledTools), maps.Clone(u.base(name).Aliases), slices.Clone(spec.Expose)}, origin == originConfig, nil
}

// SetTools changes the settings of the tools of an upstream that a user added.
func (u *Set) SetTools(ctx context.Context, name string, s ToolSettings) error {
	if err := (overlay.Rule{Aliases: s.Aliases}).Validate(); err != nil {
		return err
	}
	return u.EditServer(ctx, name, func(server upstreamstore.Server) (upstreamstore.Server, error) {
		server.DisabledTools, server.Aliases, server.Expose = s.Disabled, s.Aliases, s.Expose
		return server, nil
	})
}

// base is the rule of a namespace without that of startup.lua. u.mu is held.
func (u *Set) base(name string) overlay.Rule {
	if origin, _ := u.origin(name); origin == OriginAdded {
		return overlay.Rule{Aliases: u.entries[name].Server.Aliases}
	}
	return u.rules[name]
}

// rule is the rule of a namespace. u.mu is held.
func (u *Set) rule(name string) overlay.Rule { return u.base(name).OverriddenBy(u.scripted[name]) }

// setRules sets the rules of the upstreams that users added.
func (u *Set) setRules() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.entries {
		u.Overlay.SetRule(name, u.rule(name))
	}
}
