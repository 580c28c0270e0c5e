package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/luanette/luanette/internal/access/approval"
	"github.com/luanette/luanette/internal/access/policy"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// PolicyConfig is one rule: what holds for some keys and some tools. The first
// that fits counts.
type PolicyConfig struct {
	Key    string `toml:"key,omitempty" help:"name of the keys it is about, * for any letters; anybody when left away"`
	Tool   string `toml:"tool" help:"what it is about: namespace.tool, one of our tools, or a function of scripts such as http.request; * for any letters"`
	Do     string `toml:"do" help:"allow, deny, approve (a person must say yes first) or read_only (allow what changes nothing)"`
	Reason string `toml:"reason,omitempty" help:"told to whom it refuses"`
}

// openPolicy makes the policy before anything that heeds it.
func (h *House) openPolicy(ctx context.Context) (err error) {
	if h.policy, err = policy.Open(ctx, h.store, h.config.policySettings(), h.runsScript); err != nil {
		return err
	}
	return h.openAudit(ctx)
}

// runsScript tells whether a tool of ours runs a script here: one that is published,
// or code.
func (h *House) runsScript(name string) bool {
	switch name {
	case "lua_eval", "execute_code", "lua_preview":
		return true
	default:
		return h.isScript(name)
	}
}

// policySettings are the policy as the configuration has it.
func (c *Config) policySettings() policy.Settings {
	s := policy.Settings{ReadOnly: c.ReadOnly, Readers: c.Readers, Labels: map[string][]string{}, Accepts: maps.Clone(c.Accepts)}
	if s.Accepts == nil {
		s.Accepts = map[string][]string{}
	}
	for _, r := range c.Policy {
		s.Rules = append(s.Rules, policy.Rule{Key: r.Key, Tool: r.Tool, Do: policy.Verdict(r.Do), Reason: r.Reason})
	}
	for name, u := range c.Upstreams {
		if len(u.Labels) > 0 {
			s.Labels[name] = u.Labels
		}
		if len(u.Accepts) > 0 {
			s.Accepts[name] = append(slices.Clone(s.Accepts[name]), u.Accepts...)
		}
	}
	return s
}

func (c *Config) checkPolicy() error {
	for i, r := range c.Policy {
		switch {
		case r.Tool == "":
			return fault.New(fault.Config, "policy %d: tool is missing", i+1).WithHint(`write tool = "namespace.tool", or "*" for all`)
		case !slices.Contains(policy.Verdicts(), policy.Verdict(r.Do)):
			return fault.New(fault.Config, "policy %d: do: %q is none", i+1, r.Do).WithHint("use allow, deny, approve or read_only")
		}
	}
	for _, place := range slices.Sorted(mapKeys(c.Accepts)) {
		if _, known := c.Upstreams[place]; known || slices.Contains(policy.Sinks, place) {
			continue
		}
		f := fault.New(fault.Config, "accepts.%s: there is no such place", place)
		if near := suggest.Names(place, append(slices.Sorted(mapKeys(c.Upstreams)), policy.Sinks...), 1); len(near) > 0 {
			return f.WithHint("did you mean %s?", near[0])
		}
		return f.WithHint("an upstream's namespace, or one of %s", strings.Join(policy.Sinks, ", "))
	}
	return nil
}

// showPolicy writes the rules.
func (c *Config) showPolicy(out *strings.Builder) error {
	for _, r := range c.Policy {
		text, err := toml.Marshal(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n[[policy]]\n%s", text)
	}
	if len(c.Accepts) > 0 {
		text, err := toml.Marshal(c.Accepts)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n[accepts]\n%s", text)
	}
	return nil
}

// approvalPolicy is what needs approval: as the configuration says of scripts, and
// by rules of the policy.
func (h *House) approvalPolicy(c *Config) approval.Policy {
	p := c.policy()
	if slices.ContainsFunc(c.Policy, func(r PolicyConfig) bool { return policy.Verdict(r.Do) == policy.Approve }) {
		p.Also = h.needsApproval
	}
	return p
}

func (h *House) needsApproval(ctx context.Context, e host.Effect) bool {
	ref, isTool := e.Tool()
	if !isTool {
		ref = tool.Ref{Name: e.DisplayName()}
	}
	info, _ := h.catalog.Find(ctx, ref)
	info.Ref = ref
	return h.policy.Decide(principal.Of(ctx).Name, &info).Verdict == policy.Approve
}

// hides tells which tools somebody may never call; nil: none.
func (h *House) hides(who principal.Principal) func(*tool.Info) bool { return h.policy.Hides(who.Name) }

// explainPolicy says what the policy says of a tool and a key.
func (h *House) explainPolicy(ctx context.Context, name, key string) (adminapi.PolicyCheck, error) {
	info, err := h.catalog.Resolve(ctx, name)
	if err != nil { // a function of scripts, or a tool that is not there now
		space, rest, dotted := strings.Cut(name, ".")
		if info.Ref = (tool.Ref{Space: space, Name: rest}); !dotted {
			info.Ref = tool.Ref{Name: name}
		}
	}
	s := h.policy.Settings()
	d := h.policy.Decide(key, &info)
	return adminapi.PolicyCheck{
		Tool: info.Ref.String(), Key: key, Known: err == nil, Verdict: string(d.Verdict), Rule: d.Rule, Reason: d.Reason,
		ReadOnlyHint: info.Hints.ReadOnly, Labels: s.Labels[info.Space], Accepts: s.Accepts[info.Space],
	}, nil
}
