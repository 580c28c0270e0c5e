package script

import (
	"context"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Upstreams is the set of upstreams for scripts.
type Upstreams struct {
	Set *upstreamset.Set
	// CheckURL decides which addresses a script may add.
	CheckURL func(ctx context.Context, target *url.URL) error
}

// checkAdmin refuses what the tool of that name would refuse to the caller, also for a
// script that runs for a chat.
func checkAdmin(ctx context.Context, name string) error {
	if !principal.Of(ctx).Admin() {
		return fault.New(fault.Denied, "%s is for administrators", name).WithHint("it takes a key with the scope %s", principal.Admin)
	}
	if scope := tool.ScopeOf(ctx); scope != nil && !scope.Allows(tool.Ref{Name: name}) {
		return fault.New(fault.Denied, "this conversation may not add or remove servers").
			WithHint("ask an administrator of the server")
	}
	return nil
}

// Check returns why Add would refuse an upstream.
func (s Upstreams) Check(ctx context.Context, name, address string) error {
	if err := checkAdmin(ctx, "mcp_connect"); err != nil {
		return err
	}
	if err := (upstream.Spec{Name: name, Settings: upstream.Settings{URL: address}}).Validate(); err != nil {
		return err
	}
	target, err := url.Parse(address)
	if err != nil {
		return fault.New(fault.InvalidParams, "upstream %s: %q is not a URL", name, address)
	}
	return s.CheckURL(ctx, target)
}

// Add adds an upstream on all nodes.
func (s Upstreams) Add(ctx context.Context, name, address string) error {
	if err := s.Check(ctx, name, address); err != nil {
		return err
	}
	return s.Set.Add(ctx, name, upstream.Settings{URL: address})
}

// Remove removes an upstream on all nodes.
func (s Upstreams) Remove(ctx context.Context, name string) (bool, error) {
	if err := checkAdmin(ctx, "mcp_disconnect"); err != nil {
		return false, err
	}
	return s.Set.Remove(ctx, name)
}

// Status returns the status of an upstream.
func (s Upstreams) Status(name string) (host.UpstreamStatus, bool) {
	status, ok := s.Set.Manager.Status(name)
	if !ok || upstreamset.IsPrivate(name) {
		return host.UpstreamStatus{}, false
	}
	return hostStatus(status), true
}

// List returns the status of all upstreams.
func (s Upstreams) List() []host.UpstreamStatus {
	var list []host.UpstreamStatus
	for _, status := range s.Set.Manager.List() {
		if !upstreamset.IsPrivate(status.Name) {
			list = append(list, hostStatus(status))
		}
	}
	return list
}

func hostStatus(s upstream.Status) host.UpstreamStatus {
	return host.UpstreamStatus{
		Name: s.Name, State: string(s.State), Tools: s.Tools, Endpoint: s.Target,
		Calls: s.Stats.Calls, Error: s.LastError, Attempt: s.Attempt, LastTool: s.Stats.LastTool,
	}
}

// StartupUpstreams is the set of upstreams for startup.lua, which belongs to the owner of
// the server: it may also add commands. What it adds lasts until the process ends, on
// this node only.
type StartupUpstreams struct{ Upstreams }

// Add adds an upstream on this node.
func (s StartupUpstreams) Add(ctx context.Context, name, address string) error {
	s.Set.Audit(ctx, "upstream.add", name, []byte(address))
	return s.Set.AddLocal(ctx, upstream.Spec{Name: name, Settings: upstream.Settings{URL: address}, Trusted: true})
}

// Remove removes an upstream on this node.
func (s StartupUpstreams) Remove(ctx context.Context, name string) (bool, error) {
	s.Set.Audit(ctx, "upstream.remove", name, nil)
	return s.Set.RemoveLocal(name)
}

// AddCommand adds an upstream that is started as a command.
func (s StartupUpstreams) AddCommand(ctx context.Context, name string, c host.Command) error {
	s.Set.Audit(ctx, "upstream.add", name, []byte(strings.Join(append([]string{c.Command}, c.Args...), "\x00")))
	return s.Set.AddLocal(ctx, upstream.Spec{Name: name, Settings: upstream.Settings{Command: c.Command, Args: c.Args, Env: c.Env, Cwd: c.Cwd}, Trusted: true})
}

// Alias gives a tool another name.
func (s StartupUpstreams) Alias(ctx context.Context, namespace, alias, name string) error {
	return s.Set.ChangeRule(ctx, namespace, func(r *overlay.Rule) {
		if r.Aliases == nil {
			r.Aliases = map[string]string{}
		}
		r.Aliases[alias] = name
	})
}

// Prefer sets the priority of a tool or of a namespace.
func (s StartupUpstreams) Prefer(ctx context.Context, namespace, name string, priority int) error {
	return s.Set.ChangeRule(ctx, namespace, func(r *overlay.Rule) {
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
