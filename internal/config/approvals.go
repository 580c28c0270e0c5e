package config

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/govern/approval"
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

// ApprovalWebhook returns the address that is told of requests for approval; nil if none
// is configured.
func (c *Config) ApprovalWebhook(secrets secret.Finder, client *http.Client) (*approval.Webhook, error) {
	if c.ApproveWebhook == "" {
		return nil, nil
	}
	key, err := secrets.Find(c.ApproveSecret)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "approve_webhook_secret")
	}
	return &approval.Webhook{URL: c.ApproveWebhook, Secret: key, Client: client}, nil
}

func (c *Config) checkApprovals() error {
	if !approval.Mode(c.Approve).Known() {
		return unknownMode("approve", c.Approve)
	}
	if c.ApproveExpire <= 0 {
		return fault.New(fault.Config, "approve_expire: must be greater than zero").WithHint("such as 168h")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if mode := c.Upstreams[name].Approve; mode != "" && !approval.Mode(mode).Known() {
			return unknownMode("upstreams."+name+".approve", mode)
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(c.Approvals)) {
		if strings.Contains(subject, "*") { // it would match no tool
			return fault.New(fault.Config, "approvals.%q: names must be complete, without *", subject).WithHint("a namespace applies to all of its tools: %s", strings.TrimRight(subject, ".*"))
		}
		if mode := c.Approvals[subject]; !approval.Mode(mode).Known() {
			return unknownMode("approvals."+subject, mode)
		}
	}
	if err := c.checkMail(); err != nil {
		return err
	}
	return c.checkApprovalWebhook()
}

func unknownMode(key, mode string) error {
	return fault.New(fault.Config, "%s: unknown approval mode %q", key, mode).WithHint("use never, writes or all")
}

func (c *Config) checkApprovalWebhook() error {
	if c.ApproveWebhook == "" {
		return nil
	}
	u, err := url.Parse(c.ApproveWebhook)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || c.ApproveSecret == "" {
		return fault.New(fault.Config, "approve_webhook: needs an address with https, and approve_webhook_secret").WithHint("docs/approvals.md")
	}
	return nil
}
