package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/access/approval"
	"github.com/luanette/luanette/internal/base/fault"
)

// ApprovalPolicy returns which calls need approval.
func (c *Config) ApprovalPolicy() approval.Policy {
	p := approval.Policy{Default: approval.Mode(c.Approve), Rules: map[string]approval.Mode{}, Own: c.ApproveOwn}
	for name, u := range c.Upstreams {
		if u.Approve != "" {
			p.Rules[name] = approval.Mode(u.Approve)
		}
	}
	for subject, mode := range c.Approvals {
		p.Rules[subject] = approval.Mode(mode)
	}
	return p
}

func (c *Config) checkApprovals() error {
	wrong := func(key, mode string) error {
		return fault.New(fault.Config, "%s: unknown approval mode %q", key, mode).WithHint("use never, writes or all")
	}
	if !approval.Mode(c.Approve).Known() {
		return wrong("approve", c.Approve)
	}
	if c.ApproveExpire <= 0 {
		return fault.New(fault.Config, "approve_expire: must be greater than zero").WithHint("such as 168h")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if mode := c.Upstreams[name].Approve; mode != "" && !approval.Mode(mode).Known() {
			return wrong("upstreams."+name+".approve", mode)
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(c.Approvals)) {
		if strings.Contains(subject, "*") { // it would match no tool
			return fault.New(fault.Config, "approvals.%q: names must be complete, without *", subject).WithHint("a namespace applies to all of its tools: %s", strings.TrimRight(subject, ".*"))
		}
		if mode := c.Approvals[subject]; !approval.Mode(mode).Known() {
			return wrong("approvals."+subject, mode)
		}
	}
	return nil
}
