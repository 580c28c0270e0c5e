package policy

import (
	"fmt"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// rulesFor returns the rules of the organisation that somebody acts in.
func (s *Settings) rulesFor(who principal.Principal) (org string, rules []Rule) {
	if org = who.ActingOrg(); org == "" {
		return "", nil
	}
	return org, s.Orgs[org]
}

// applies reports whether there may be a verdict other than Allow for somebody.
func (s *Settings) applies(who principal.Principal) bool {
	_, rules := s.rulesFor(who)
	return len(s.Rules)+len(rules) > 0 || s.ReadOnly
}

// every returns the rules of the server and of all organisations.
func (s *Settings) every() []Rule {
	all := slices.Clone(s.Rules)
	for _, rules := range s.Orgs {
		all = append(all, rules...)
	}
	return all
}

// Approves reports whether a rule demands approval.
func (s *Settings) Approves() bool {
	return slices.ContainsFunc(s.every(), func(r Rule) bool { return r.Do == Approve })
}

// decideFor is what the server's rules and those of the organisation say, whichever is
// stricter. The rules of an organisation call its own upstreams and scripts as its members do.
func (s *Settings) decideFor(who principal.Principal, ref tool.Ref, original string, harmless bool) Decision {
	d := s.decide(who.RuleNames(), subjects(ref, original), ref, harmless)
	org, rules := s.rulesFor(who)
	if len(rules) == 0 {
		return d
	}
	own := Settings{Rules: rules}
	shown := shownTo(who, ref)
	theirs := own.decide(who.RuleNames(), subjects(shown, original), shown, s.harmless(ref, subjects(ref, original), harmless))
	if theirs.Rule != "" {
		theirs.Rule = fmt.Sprintf("%s of the organisation %s", theirs.Rule, org)
	}
	return d.stricter(theirs)
}

// stricter returns the stricter of the server's decision and that of an organisation. If both
// demand approval, the server's says who decides; an organisation can ask for more of them.
func (d Decision) stricter(theirs Decision) Decision {
	order := []Verdict{Allow, Approve, Deny}
	switch mine, other := slices.Index(order, d.Verdict), slices.Index(order, theirs.Verdict); {
	case other > mine, other == mine && d.Rule == "":
		return theirs
	case other == mine && theirs.By == d.By:
		d.Count = max(d.Count, theirs.Count)
	}
	return d
}

// shownTo returns the name of a tool for somebody: that of their own organisation is without it.
func shownTo(who principal.Principal, ref tool.Ref) tool.Ref {
	if ref.Space == "" {
		return tool.Ref{Name: who.NameOf(ref.Name)}
	}
	return tool.Ref{Space: who.NameOf(ref.Space), Name: ref.Name}
}
