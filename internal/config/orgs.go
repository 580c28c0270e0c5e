package config

import (
	"cmp"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Org is what an organisation has of its own.
type Org struct {
	Upstreams map[string]Upstream `toml:"upstreams,omitempty" help:"upstreams of this organisation alone, as in [upstreams]"`
	Quota     OrgQuota            `toml:"quota" help:"how much its members may use together"`
	Policy    []PolicyRule        `toml:"policy,omitempty" help:"rules for its members, as in [[policy]]; they can only restrict further"`

	MaxUpstreams int `toml:"max_upstreams,omitempty" help:"how many upstreams those who manage it may add; 20 if it is not set, and none if it is negative"`
}

// defaultMaxUpstreams is how many upstreams an organisation may add.
const defaultMaxUpstreams = 20

// MaxUpstreams is how many upstreams those who manage an organisation may add.
func (c *Config) MaxUpstreams(org string) int {
	return max(cmp.Or(c.Orgs[org].MaxUpstreams, defaultMaxUpstreams), 0)
}

// OrgQuota limits what the members of an organisation use together. Zero is no limit.
type OrgQuota struct {
	Calls     int64 `toml:"calls" help:"how many calls of upstreams' tools a day, in UTC"`
	Jobs      int64 `toml:"jobs" help:"how many jobs start a day, in UTC"`
	CPU       int64 `toml:"cpu_seconds" help:"how many seconds of processor time its scripts use a day, in UTC"`
	StorageMB int64 `toml:"storage_mb" help:"how many MiB its contents may have together, each counted once"`
}

// OrgQuotas returns the quotas of organisations, by their settings.
func (c *Config) OrgQuotas() map[string]map[string]int64 {
	quotas := map[string]map[string]int64{}
	for name, org := range c.Orgs {
		quotas[name] = map[string]int64{"calls": org.Quota.Calls, "jobs": org.Quota.Jobs, "cpu_seconds": org.Quota.CPU, "storage_mb": org.Quota.StorageMB}
	}
	return quotas
}

// spreadOrgs moves the upstreams of organisations to the others, by their namespaces:
// [orgs.acme.upstreams.wiki] is wiki@acme, and so is [upstreams.wiki] with org = "acme".
func (l *Loaded) spreadOrgs() error {
	own := map[string]Upstream{}
	add := func(name, org string, u Upstream) error {
		if err := principal.CheckOrg(org); err != nil {
			return fault.Wrap(fault.Config, err, "upstreams.%s.org", name).WithHint("%s", fault.HintOf(err))
		}
		space := principal.InOrg(name, org)
		if _, twice := own[space]; twice {
			return fault.New(fault.Config, "upstreams.%s: the organisation %s has two of this name", name, org)
		}
		if len(u.Prefixes) > 0 {
			return fault.New(fault.Config, "upstreams.%s.prefixes: an upstream of an organisation cannot have prefixes", name).
				WithHint("prefixes apply to the callers of all organisations")
		}
		u.Org = nil
		own[space] = u
		return nil
	}
	for _, org := range slices.Sorted(maps.Keys(l.Orgs)) {
		if q := l.Orgs[org].Quota; min(q.Calls, q.Jobs, q.CPU, q.StorageMB) < 0 {
			return fault.New(fault.Config, "orgs.%s.quota: a quota cannot be negative", org).WithHint("zero is no limit")
		}
		for _, name := range slices.Sorted(maps.Keys(l.Orgs[org].Upstreams)) {
			if err := add(name, org, l.Orgs[org].Upstreams[name]); err != nil {
				return err
			}
		}
		rest := l.Orgs[org]
		rest.Upstreams = nil
		l.Orgs[org] = rest
	}
	for _, name := range slices.Sorted(maps.Keys(l.Upstreams)) {
		orgs, err := orgsOf(name, l.Upstreams[name])
		if err != nil {
			return err
		}
		for _, org := range orgs {
			if err := add(name, org, l.Upstreams[name]); err != nil {
				return err
			}
		}
		if l.Upstreams[name].Org != nil {
			delete(l.Upstreams, name)
		}
	}
	if l.Upstreams == nil && len(own) > 0 {
		l.Upstreams = map[string]Upstream{}
	}
	maps.Copy(l.Upstreams, own)
	return nil
}

// orgsOf are the organisations that an upstream belongs to; none if it is everybody's.
func orgsOf(name string, u Upstream) ([]string, error) {
	if org, one := u.Org.(string); one {
		return []string{org}, nil
	}
	orgs, err := exposeList(u.Org)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "upstreams.%s.org", name).WithHint("org = \"acme\", or a list of names")
	}
	return orgs, nil
}
