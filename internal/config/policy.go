package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/config/toml"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/govern/policy"
)

// PolicyRule is one rule for some keys and some tools. The first rule that matches
// decides.
type PolicyRule struct {
	Key    string `toml:"key,omitempty" help:"name of the keys it applies to, * matches any text; optional, matches everyone if omitted"`
	Tool   string `toml:"tool" help:"what it applies to: namespace.tool, one of our tools, or a script function such as http.request; * matches any text"`
	Do     string `toml:"do" help:"allow, deny, approve (requires approval) or read_only (allows what changes nothing)"`
	By     string `toml:"by,omitempty" help:"with approve: the role of the people who decide, such as finance; if omitted, administrators decide"`
	Count  int    `toml:"count,omitempty" help:"with by: how many different people must agree; 1 if omitted"`
	Reason string `toml:"reason,omitempty" help:"included in the error of refused calls"`
}

// count is how many people must agree.
func (r PolicyRule) count() int {
	if r.By == "" {
		return 0
	}
	return max(r.Count, 1)
}

// PolicySettings returns the configured policy.
func (c *Config) PolicySettings() policy.Settings {
	s := policy.Settings{ReadOnly: c.ReadOnly, Readers: c.Readers, Labels: map[string][]string{}, Orgs: map[string][]policy.Rule{}, Accepts: maps.Clone(c.Accepts)}
	if s.Accepts == nil {
		s.Accepts = map[string][]string{}
	}
	s.Rules = policyRules(c.Policy)
	for name, org := range c.Orgs {
		if len(org.Policy) > 0 {
			s.Orgs[name] = policyRules(org.Policy)
		}
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

func policyRules(from []PolicyRule) (rules []policy.Rule) {
	for _, r := range from {
		rules = append(rules, policy.Rule{Key: r.Key, Tool: r.Tool, Do: policy.Verdict(r.Do), By: r.By, Count: r.count(), Reason: r.Reason})
	}
	return rules
}

func (c *Config) checkPolicy() error {
	if err := c.checkRules("policy", c.Policy); err != nil {
		return err
	}
	for _, org := range slices.Sorted(maps.Keys(c.Orgs)) {
		if err := c.checkRules("orgs."+org+".policy", c.Orgs[org].Policy); err != nil {
			return err
		}
	}
	for _, place := range slices.Sorted(maps.Keys(c.Accepts)) {
		if _, known := c.Upstreams[place]; known || slices.Contains(policy.Sinks, place) {
			continue
		}
		f := fault.New(fault.Config, "accepts.%s: no such upstream or sink", place)
		if near := suggest.Names(place, append(slices.Sorted(maps.Keys(c.Upstreams)), policy.Sinks...), 1); len(near) > 0 {
			return f.WithHint("did you mean %s?", near[0])
		}
		return f.WithHint("an upstream's namespace, or one of %s", strings.Join(policy.Sinks, ", "))
	}
	return nil
}

// checkRules refuses rules that cannot be; list is where they are.
func (c *Config) checkRules(list string, rules []PolicyRule) error {
	for i, r := range rules {
		place := fmt.Sprintf("%s %d", list, i+1)
		switch {
		case r.Tool == "":
			return fault.New(fault.Config, "%s: tool is missing", place).WithHint(`write tool = "namespace.tool", or "*" for all`)
		case !slices.Contains(policy.Verdicts(), policy.Verdict(r.Do)):
			return fault.New(fault.Config, "%s: do: unknown value %q", place, r.Do).WithHint("use allow, deny, approve or read_only")
		}
		if err := c.checkDeciders(place, r); err != nil {
			return err
		}
	}
	return nil
}

// checkDeciders refuses a rule whose requests nobody could decide.
func (c *Config) checkDeciders(place string, r PolicyRule) error {
	roles := c.PeopleRoles()
	switch _, known := roles[r.By]; {
	case (r.By != "" || r.Count != 0) && policy.Verdict(r.Do) != policy.Approve:
		return fault.New(fault.Config, "%s: by and count are for do = \"approve\"", place)
	case r.By == "" && r.Count != 0:
		return fault.New(fault.Config, "%s: count needs by, the role of those who decide", place)
	case r.By == "":
		return nil
	case r.Count < 0:
		return fault.New(fault.Config, "%s: count must not be negative", place)
	case len(c.Identity) == 0:
		return fault.New(fault.Config, "%s: by = %q needs people who sign in", place, r.By).WithHint("configure a provider: docs/people.md")
	case !known:
		return fault.New(fault.Config, "%s: by: no role %q", place, r.By).WithHint("there are: %s", strings.Join(roles.Names(), ", "))
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
