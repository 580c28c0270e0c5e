package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/access/approval"
	"github.com/luanette/luanette/internal/base/fault"
)

// ApprovalPolicy is what the configuration wants approved.
func (c *Config) ApprovalPolicy() approval.Policy {
	p := approval.Policy{Default: approval.Mode(c.Approve), Rules: map[string]approval.Mode{}}
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
		return fault.New(fault.Config, "%s: %q is not a way to approve", key, mode).WithHint("use never, writes or all")
	}
	if !approval.Mode(c.Approve).Known() {
		return wrong("approve", c.Approve)
	}
	if c.ApproveExpire <= 0 {
		return fault.New(fault.Config, "approve_expire: a question must stand for some time").WithHint("such as 168h")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if mode := c.Upstreams[name].Approve; mode != "" && !approval.Mode(mode).Known() {
			return wrong("upstreams."+name+".approve", mode)
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(c.Approvals)) {
		if strings.Contains(subject, "*") { // which would stand for nothing, unnoticed
			return fault.New(fault.Config, "approvals.%q: names are whole here, without *", subject).WithHint("a namespace stands for all of its tools: %s", strings.TrimRight(subject, ".*"))
		}
		if mode := c.Approvals[subject]; !approval.Mode(mode).Known() {
			return wrong("approvals."+subject, mode)
		}
	}
	return nil
}
