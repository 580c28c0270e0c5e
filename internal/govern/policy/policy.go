// Package policy decides who may call which tool, and where labelled data may flow.
//
// Rules name keys and tools: the first that matches counts, and calls that match none
// are allowed. Read-only mode allows only tools that change nothing. Labels follow
// data: once a run has read from a labelled namespace, everything it does later carries
// the label, and may go only where the label is accepted. Labels belong to the run as a
// whole, not to single values: whatever a script does to a text, the label stays.
package policy

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Verdict is what a rule decides.
type Verdict string

// The verdicts.
const (
	Allow    Verdict = "allow"
	Deny     Verdict = "deny"
	Approve  Verdict = "approve"   // a person must approve first
	ReadOnly Verdict = "read_only" // allow tools that change nothing
)

// Verdicts are all verdicts.
func Verdicts() []Verdict { return []Verdict{Allow, Deny, Approve, ReadOnly} }

// Rule applies to some keys and some tools.
type Rule struct {
	Key    string // a pattern for the key's name; "" matches everyone
	Tool   string // a pattern such as "git.push", "git.*" or "*"; a function of scripts such as "http.request" too
	Do     Verdict
	By     string // with Approve: the role of those who approve; "" is whoever may decide requests
	Count  int    // with By: how many of them must agree
	Reason string // part of the error when it refuses
}

// means reports whether a rule is about one of the names of somebody.
func (r Rule) means(who []string) bool {
	return r.Key == "" || slices.ContainsFunc(who, func(name string) bool { return principal.Matches(r.Key, name) })
}

func (r Rule) fits(who, subjects []string) bool {
	return r.means(who) && slices.ContainsFunc(subjects, func(s string) bool { return principal.Matches(r.Tool, s) })
}

// subjects are the names by which rules may refer to a tool: its name, and the
// upstream's where that differs.
func subjects(ref tool.Ref, original string) []string {
	if original == "" || original == ref.Name {
		return []string{ref.String()}
	}
	return []string{ref.String(), tool.Ref{Space: ref.Space, Name: original}.String()}
}

// Settings are the whole policy. The zero value allows everything.
type Settings struct {
	Rules []Rule
	// Orgs are rules of organisations for their members. They can only restrict further.
	Orgs     map[string][]Rule
	ReadOnly bool
	// Readers are patterns of tools known to change nothing. In namespaces that they
	// name, the hints of the tools are ignored.
	Readers []string
	// Labels are the labels of data read from a namespace.
	Labels map[string][]string
	// Accepts are the labels that may flow to a namespace, or to one of Sinks.
	Accepts map[string][]string
}

// Sinks are places besides namespaces to which a script can send data.
var Sinks = []string{"http", "files", "commands", "contents", "events", "upstreams", "luanette"}

// follows reports whether there are any labels.
func (s *Settings) follows() bool { return len(s.Labels) > 0 }

// NamesRoles reports whether a rule says which role approves.
func (s *Settings) NamesRoles() bool {
	return slices.ContainsFunc(s.every(), func(r Rule) bool { return r.By != "" })
}

// names are all labels.
func (s *Settings) names() []string {
	var all []string
	for _, labels := range s.Labels {
		all = append(all, labels...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Policy holds the current settings. It is safe for concurrent use.
type Policy struct {
	db       *db.DB
	runs     func(name string) bool
	settings atomic.Pointer[Settings]
}

// Open makes a policy that remembers the labels of stored data in a database. runs
// reports which of our own tools run a script: the calls of that script are checked
// themselves.
func Open(ctx context.Context, database *db.DB, s Settings, runs func(name string) bool) (*Policy, error) {
	if err := database.Migrate(ctx, "policy", Migrations); err != nil {
		return nil, err
	}
	p := &Policy{db: database, runs: runs}
	p.Set(s)
	return p, nil
}

// Set replaces the settings.
func (p *Policy) Set(s Settings) { p.settings.Store(&s) }

// Decision is what the policy says about one call, and why.
type Decision struct {
	Verdict Verdict
	Rule    string // the rule that decided, readable; "" when none did
	Reason  string
	By      string // with Approve: as in the rule
	Count   int
}

// Decide says whether somebody may use a tool.
func (p *Policy) Decide(who principal.Principal, info *tool.Info) Decision {
	return p.settings.Load().decideFor(who, info.Ref, info.Original, info.Hints.ReadOnly || p.delegates(info))
}

// Hides returns which tools somebody may never call, so that they need not be listed; nil
// when there are none. Tools that need approval are not among them.
func (p *Policy) Hides(who principal.Principal) func(info *tool.Info) bool {
	s := p.settings.Load()
	names := who.RuleNames()
	refuses := func(r Rule) bool {
		return (r.Do == Deny || r.Do == ReadOnly) && r.means(names)
	}
	_, theirs := s.rulesFor(who)
	if !s.ReadOnly && !slices.ContainsFunc(s.Rules, refuses) && !slices.ContainsFunc(theirs, refuses) {
		return nil
	}
	return func(info *tool.Info) bool { return p.Decide(who, info).Verdict == Deny }
}

// delegates reports whether one of our tools does nothing itself but run a script or call
// another tool.
func (p *Policy) delegates(info *tool.Info) bool {
	return info.RunsScript || info.Ref.IsRelay() || info.Space == "" && p.runs(info.Name)
}

// Reads reports whether a tool is read-only, by the marks of the administrator or its own.
func (p *Policy) Reads(info *tool.Info) bool {
	return p.settings.Load().harmless(info.Ref, subjects(info.Ref, info.Original), info.Hints.ReadOnly)
}

func (s *Settings) decide(who, subjects []string, ref tool.Ref, harmless bool) Decision {
	harmless = s.harmless(ref, subjects, harmless)
	for i, r := range s.Rules {
		if !r.fits(who, subjects) {
			continue
		}
		d := Decision{Verdict: r.Do, Rule: fmt.Sprintf("policy %d (%s)", i+1, r.words()), Reason: r.Reason, By: r.By, Count: r.Count}
		if r.Do == ReadOnly {
			d.Verdict = Allow
			if !harmless {
				d.Verdict, d.Reason = Deny, cmp.Or(r.Reason, "it may change something")
			}
		}
		if d.Verdict == Deny || !s.ReadOnly {
			return d
		}
		break // read-only mode overrides what rules allow
	}
	if s.ReadOnly && !harmless {
		return Decision{Verdict: Deny, Rule: "read_only", Reason: "it may change something, and the server is read-only"}
	}
	return Decision{Verdict: Allow}
}

func (r Rule) words() string {
	key := ""
	if r.Key != "" {
		key = "key " + r.Key + ", "
	}
	by := ""
	if r.By != "" {
		by = fmt.Sprintf(", by %d with the role %s", r.Count, r.By)
	}
	return key + string(r.Do) + " " + r.Tool + by
}

// harmless reports whether a tool changes nothing: by Readers if they name its namespace,
// else by its own hint.
func (s *Settings) harmless(ref tool.Ref, subjects []string, claims bool) bool {
	named := false
	for _, pattern := range s.Readers {
		space, _, _ := strings.Cut(pattern, ".")
		if ref.Space != "" && space == ref.Space {
			named = true
		}
		if slices.ContainsFunc(subjects, func(s string) bool { return principal.Matches(pattern, s) }) {
			return true
		}
	}
	return claims && !named
}

// Admit decides about a call of the principal of ctx. It returns the context for
// the call, which records the labels of what the call reads.
func (p *Policy) Admit(ctx context.Context, info *tool.Info, call tool.Call) (context.Context, Decision, error) {
	s := p.settings.Load()
	d := Decision{Verdict: Allow}
	if tool.IsOnlyReading(ctx) && !s.harmless(info.Ref, subjects(info.Ref, info.Original), info.Hints.ReadOnly) {
		return ctx, Decision{Verdict: Deny, Rule: tool.CallToolRead}, notReading(info.Ref)
	}
	if who := principal.Of(ctx); s.applies(who) {
		d = s.decideFor(who, info.Ref, info.Original, info.Hints.ReadOnly || p.delegates(info))
		if err := d.refusal(ctx, info.Ref); err != nil {
			return ctx, d, err
		}
	}
	if !s.follows() {
		return ctx, d, nil
	}
	ctx = p.Begin(ctx)
	if err := p.follow(ctx, s, info, call); err != nil {
		return ctx, Decision{Verdict: Deny, Rule: "labels"}, err
	}
	return ctx, d, nil
}

// refusal is the error of a decision, or nil. Approval is a step of its own. The command that
// explains it is for administrators.
func (d Decision) refusal(ctx context.Context, ref tool.Ref) error {
	if d.Verdict != Deny {
		return nil
	}
	explained := "an administrator can change that"
	if principal.Of(ctx).May(principal.Admin, "") {
		explained = fmt.Sprintf("`luanette policy check %s` explains it", ref)
	}
	return fault.New(fault.Denied, "%s is not allowed: %s", ref, cmp.Or(d.Reason, d.Rule)).
		WithHint("%s decided; %s", d.Rule, explained)
}

// notReading refuses what is not read-only where only reading is allowed.
func notReading(ref tool.Ref) error {
	return fault.New(fault.Denied, "%s may change something, and %s only reads", ref, tool.CallToolRead).
		WithHint("use %s", tool.CallTool)
}

// Settings are the current settings. They are shared: read, never write.
func (p *Policy) Settings() *Settings { return p.settings.Load() }
