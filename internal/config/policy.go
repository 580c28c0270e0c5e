package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/mail"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/config/toml"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/govern/policy"
)

// PolicyRule is one rule for some keys and some tools. The first rule that matches
// decides.
type PolicyRule struct {
	Key    string `toml:"key,omitempty" help:"name of the keys it applies to, * matches any text; optional, matches everyone if omitted"`
	Tool   string `toml:"tool" help:"what it applies to: namespace.tool, one of our tools, or a script function such as http.request; * matches any text"`
	Do     string `toml:"do" words:"verdicts" help:"allow, deny, approve (requires approval) or read_only (allows what changes nothing)"`
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
		if r.Tool == "" {
			return fault.New(fault.Config, "%s: tool is missing", place).WithHint(`write tool = "namespace.tool", or "*" for all`)
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
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if mode := c.Upstreams[name].Approve; mode != "" && !approval.Mode(mode).Known() {
			return fault.New(fault.Config, "upstreams.%s.approve: unknown approval mode %q", name, mode).WithHint("use never, writes or all")
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(c.Approvals)) {
		if strings.Contains(subject, "*") { // it would match no tool
			return fault.New(fault.Config, "approvals.%q: names must be complete, without *", subject).WithHint("a namespace applies to all of its tools: %s", strings.TrimRight(subject, ".*"))
		}
	}
	if err := c.checkMail(); err != nil {
		return err
	}
	return c.checkApprovalWebhook()
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

// Mail is the server that sends notices to people.
type Mail struct {
	Server   string `toml:"server" trust:"needed" help:"host and port of the mail server that tells people of requests for approval, such as smtp.example:587; docs/approvals.md"`
	From     string `toml:"from" help:"address of the sender"`
	User     string `toml:"user" help:"user at the mail server; empty if it wants none"`
	Password string `toml:"password" secret:"all" help:"password of the user, as a reference such as ${env:NAME}"`
}

// ApprovalMail returns how people are told of requests for approval; nil if no mail server
// is configured.
func (c *Config) ApprovalMail(secrets secret.Finder) (*approval.Mail, error) {
	if c.Mail.Server == "" {
		return nil, nil
	}
	sender := &mail.Sender{Server: c.Mail.Server, From: c.Mail.From, User: c.Mail.User}
	if c.Mail.Password != "" {
		var err error
		if sender.Password, err = secrets.Find(c.Mail.Password); err != nil {
			return nil, fault.Wrap(fault.Config, err, "mail.password")
		}
	}
	if err := sender.Check(); err != nil {
		return nil, fault.Wrap(fault.Config, err, "mail").WithHint("docs/approvals.md")
	}
	return &approval.Mail{Sender: sender, Page: c.PublicURL + "/#/approvals"}, nil
}

func (c *Config) checkMail() error {
	if c.Mail == (Mail{}) {
		return nil
	}
	if host, _, err := net.SplitHostPort(c.Mail.Server); err != nil || host == "" || c.Mail.From == "" || len(c.Identity) == 0 {
		return fault.New(fault.Config, "mail: needs server with a port, from, and people who sign in").WithHint("server = \"smtp.example:587\"; docs/approvals.md, docs/people.md")
	}
	return nil
}

// PinSettings returns the trust settings of the upstreams.
func (c *Config) PinSettings() pin.Settings {
	s := pin.Settings{Default: pin.Mode(c.Trust), Modes: map[string]pin.Mode{}, Owned: map[string]bool{}}
	for name, u := range c.Upstreams {
		s.Owned[name] = true
		if u.Trust != "" {
			s.Modes[name] = pin.Mode(u.Trust)
		}
	}
	return s
}

func (c *Config) checkTrust() error {
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if mode := c.Upstreams[name].Trust; mode != "" && !slices.Contains(pin.Modes(), pin.Mode(mode)) {
			return fault.New(fault.Config, "upstreams.%s.trust: unknown trust mode %q", name, mode).WithHint("use open or pin")
		}
	}
	return nil
}

// Audit configures the audit log.
type Audit struct {
	Enabled bool                `toml:"enabled" help:"write an audit log of calls; docs/audit.md"`
	Keep    Duration            `toml:"keep" help:"how long entries are stored; 0 means forever"`
	Orgs    map[string]Duration `toml:"keep_orgs" help:"how long entries of single organisations are stored, instead of keep"`
	OTLP    bool                `toml:"otlp" help:"send every entry to the collector of telemetry.otlp_endpoint, as a log record"`
	Failure string              `toml:"on_failure" words:"refuse|continue" help:"while entries cannot be written, because the disk is full for example: refuse calls of tools that may change something, or continue; docs/audit.md"`
}

// The values of audit.on_failure.
const (
	AuditRefuse   = "refuse"
	AuditContinue = "continue"
)

func defaultActivity() Activity { return Activity{Keep: Duration(7 * 24 * time.Hour)} }

func defaultAudit() Audit {
	return Audit{Enabled: true, Keep: Duration(30 * 24 * time.Hour), Failure: AuditRefuse}
}

// Activity configures what is stored about what clients do, beside the audit log.
type Activity struct {
	Keep Duration `toml:"keep" help:"how long sessions of clients, and previews of the arguments and results of their calls, are stored for the page Activity; 0 stores none"`
}

// KeepOrgs is how long entries of single organisations are stored.
func (c Audit) KeepOrgs() map[string]time.Duration {
	keep := make(map[string]time.Duration, len(c.Orgs))
	for org, d := range c.Orgs {
		keep[org] = time.Duration(d)
	}
	return keep
}
