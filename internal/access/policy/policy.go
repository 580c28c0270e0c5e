// Package policy decides who may call what, and where what was read may go.
//
// Rules are about keys and tools: the first that fits counts, and what none fits is
// allowed. Read-only mode lets pass only what changes nothing. Labels follow data:
// once a run has read from a namespace that bears one, everything it does later
// bears the label too, and goes only where the label is accepted. The run is taken
// as a whole, not value by value: whatever a script does to a text, it cannot make
// it lose its label.
package policy

import (
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

//go:embed migrations/*.sql
var migrations embed.FS

// Verdict is what a rule wants.
type Verdict string

// The verdicts.
const (
	Allow    Verdict = "allow"
	Deny     Verdict = "deny"
	Approve  Verdict = "approve"   // a person must say yes first
	ReadOnly Verdict = "read_only" // allow what changes nothing
)

// Verdicts are all of them.
func Verdicts() []Verdict { return []Verdict{Allow, Deny, Approve, ReadOnly} }

// Rule is what holds for some keys and some tools.
type Rule struct {
	Key    string // a pattern for the key's name; "" is anybody
	Tool   string // a pattern such as "git.push", "git.*" or "*"; a function of scripts such as "http.request" too
	Do     Verdict
	Reason string // reported to whom it refuses
}

func (r Rule) fits(key string, subjects []string) bool {
	return (r.Key == "" || principal.Matches(r.Key, key)) && slices.ContainsFunc(subjects, func(s string) bool { return principal.Matches(r.Tool, s) })
}

// subjects are the names rules may call a tool by: that under which it shows, and
// its owner's where that is another.
func subjects(info *tool.Info) []string {
	if info.Original == "" || info.Original == info.Name {
		return []string{info.Ref.String()}
	}
	return []string{info.Ref.String(), tool.Ref{Space: info.Space, Name: info.Original}.String()}
}

// Settings are the whole policy. The zero value allows everything.
type Settings struct {
	Rules    []Rule
	ReadOnly bool
	// Readers are patterns of tools known to change nothing. Where they name a
	// namespace, what its tools claim of themselves does not count.
	Readers []string
	// Labels are what is read from a namespace bears.
	Labels map[string][]string
	// Accepts is which labels may go to a namespace, or to one of Sinks.
	Accepts map[string][]string
}

// Sinks are places besides namespaces where a script can send something.
var Sinks = []string{"http", "files", "commands", "contents", "events", "upstreams", "luanette"}

// follows tells whether anything bears a label.
func (s *Settings) follows() bool { return len(s.Labels) > 0 }

// names are all labels there are.
func (s *Settings) names() []string {
	var all []string
	for _, labels := range s.Labels {
		all = append(all, labels...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Policy is what holds now. It is safe for concurrent use.
type Policy struct {
	db       *db.DB
	runs     func(name string) bool
	settings atomic.Pointer[Settings]
}

// Open makes a policy that keeps what must be remembered in a database. runs tells
// which of our own tools run a script: what that does is decided about itself.
func Open(ctx context.Context, database *db.DB, s Settings, runs func(name string) bool) (*Policy, error) {
	if err := database.Migrate(ctx, "policy", migrations); err != nil {
		return nil, err
	}
	p := &Policy{db: database, runs: runs}
	p.Set(s)
	return p, nil
}

// Set replaces the settings.
func (p *Policy) Set(s Settings) { p.settings.Store(&s) }

// Decision is what the policy says of one call, and why.
type Decision struct {
	Verdict Verdict
	Rule    string // the rule that decided, as people read it; "" when none did
	Reason  string
}

// Decide says whether a key may use a tool.
func (p *Policy) Decide(key string, info *tool.Info) Decision {
	return p.settings.Load().decide(key, subjects(info), info.Ref, info.Hints.ReadOnly || p.delegates(info))
}

// Hides tells which tools a key may never call, so that there is no use in showing
// them; nil when there are none. What takes an approval is not among them.
func (p *Policy) Hides(key string) func(info *tool.Info) bool {
	s := p.settings.Load()
	if !s.ReadOnly && !slices.ContainsFunc(s.Rules, func(r Rule) bool {
		return (r.Do == Deny || r.Do == ReadOnly) && (r.Key == "" || principal.Matches(r.Key, key))
	}) {
		return nil
	}
	return func(info *tool.Info) bool {
		return s.decide(key, subjects(info), info.Ref, info.Hints.ReadOnly || p.delegates(info)).Verdict == Deny
	}
}

// delegates tells whether a tool of ours does nothing itself: it runs a script, or
// calls another tool.
func (p *Policy) delegates(info *tool.Info) bool {
	return info.RunsScript || info.Space == "" && (info.Name == callTool || p.runs(info.Name))
}

// callTool is our own tool that calls the one its arguments name.
const callTool = "call_tool"

func (s *Settings) decide(key string, subjects []string, ref tool.Ref, harmless bool) Decision {
	harmless = s.harmless(ref, subjects, harmless)
	for i, r := range s.Rules {
		if !r.fits(key, subjects) {
			continue
		}
		d := Decision{Verdict: r.Do, Rule: fmt.Sprintf("policy %d (%s)", i+1, r.words()), Reason: r.Reason}
		if r.Do == ReadOnly {
			d.Verdict = Allow
			if !harmless {
				d.Verdict, d.Reason = Deny, or(r.Reason, "it may change something")
			}
		}
		if d.Verdict == Deny || !s.ReadOnly {
			return d
		}
		break // read-only mode stands above what rules allow
	}
	if s.ReadOnly && !harmless {
		return Decision{Deny, "read_only", "it may change something, and the house is read-only"}
	}
	return Decision{Verdict: Allow}
}

func (r Rule) words() string {
	key := ""
	if r.Key != "" {
		key = "key " + r.Key + ", "
	}
	return key + string(r.Do) + " " + r.Tool
}

// harmless tells whether a tool changes nothing: by the owner's list where that
// speaks of its namespace, else by its own word.
func (s *Settings) harmless(ref tool.Ref, subjects []string, claims bool) bool {
	spoken := false
	for _, pattern := range s.Readers {
		space, _, _ := strings.Cut(pattern, ".")
		if ref.Space != "" && space == ref.Space {
			spoken = true
		}
		if slices.ContainsFunc(subjects, func(s string) bool { return principal.Matches(pattern, s) }) {
			return true
		}
	}
	return claims && !spoken
}

// CheckCall decides about a call of whoever ctx says. The context is that for the
// call: what it reads is on its record.
func (p *Policy) Admit(ctx context.Context, info *tool.Info, call tool.Call) (context.Context, Decision, error) {
	s := p.settings.Load()
	d := Decision{Verdict: Allow}
	if len(s.Rules) > 0 || s.ReadOnly {
		d = s.decide(principal.Of(ctx).Name, subjects(info), info.Ref, info.Hints.ReadOnly || p.delegates(info))
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

// refusal is the error of a decision that is no yes. What needs approval is asked
// about at the door of scripts, so there it has been said.
func (d Decision) refusal(ctx context.Context, ref tool.Ref) error {
	switch d.Verdict {
	case Deny:
		f := fault.New(fault.Denied, "%s is not allowed: %s", ref, or(d.Reason, d.Rule))
		return f.WithHint("%s decided; `luanette policy check %s` explains it", d.Rule, ref)
	case Approve:
		if askedByScript(ctx, ref) {
			return nil
		}
		return fault.New(fault.Denied, "%s needs somebody's approval", ref).
			WithHint("call it from a script, as mcp.%s: a script waits for the answer; %s decided", ref, d.Rule)
	default:
		return nil
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Settings are those that hold now. They are shared: read, never write.
func (p *Policy) Settings() *Settings { return p.settings.Load() }
