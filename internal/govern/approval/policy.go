package approval

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

// Mode says which effects need approval.
type Mode string

// The modes.
const (
	Never  Mode = "never"  // none
	Writes Mode = "writes" // effects that change something, or may
	All    Mode = "all"    // effects that only read as well
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Never, Writes, All} }

// Known reports whether m is one of Modes.
func (m Mode) Known() bool { return slices.Contains(Modes(), m) }

// Policy says which effects of a script need approval. Rules are by tool ("git.push"),
// namespace ("git"), function ("fs.write", "run_command") or module ("fs", "http").
// The most specific rule applies, and Default if there is none. With the zero value
// nothing needs approval.
type Policy struct {
	Default Mode
	Rules   map[string]Mode
	// Also reports whether an effect needs approval in addition to the rules, and whose;
	// may be nil.
	Also func(ctx context.Context, e host.Effect) (Demand, bool)
	// Own means that people may approve what they asked for themselves, except where a
	// role is needed.
	Own bool
}

// demand returns who must agree to an effect about this subject.
func (p Policy) demand(ctx context.Context, e host.Effect, subject, space string) (d Demand, needed bool) {
	if p.Also != nil {
		d, needed = p.Also(ctx, e)
	}
	return d, needed || needsApproval(p.mode(subject, space), e)
}

// Empty reports whether no effect ever needs approval.
func (p Policy) Empty() bool {
	for _, mode := range p.Rules {
		if mode != Never {
			return false
		}
	}
	return p.Also == nil && (p.Default == "" || p.Default == Never)
}

// needsApproval reports whether an effect needs approval.
func needsApproval(mode Mode, e host.Effect) bool {
	switch mode {
	case Writes:
		return changes(e)
	case All:
		return changes(e) || e.Kind == host.Read && !listsTools(e)
	default:
		return false
	}
}

// changes reports whether an effect changes something, or may.
func changes(e host.Effect) bool { return e.Kind == host.Write || e.Kind == host.Idempotent }

// listsTools reports whether an effect only lists the available tools.
func listsTools(e host.Effect) bool {
	return slices.Contains([]string{"mcp.has", "mcp.tools", "mcp.namespaces"}, e.Name)
}

func (p Policy) mode(subject, space string) Mode {
	if mode, ok := p.Rules[subject]; ok {
		return mode
	}
	if mode, ok := p.Rules[space]; ok {
		return mode
	}
	return p.Default
}

// Approver returns an approver for one run. It decides by the decisions about the run
// itself, less the steps that are already in its journal, then by remembered
// decisions, then by the policy. It is nil when nothing needs approval.
func (s *Store) Approver(ctx context.Context, who host.RunInfo, past []host.Step) (host.Approver, error) {
	policy := s.Policy()
	if policy.Empty() && !who.AskAlways {
		return nil, nil
	}
	decided, err := s.ofRun(ctx, who.Key)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the decisions about the run")
	}
	var all directory
	if slices.ContainsFunc(decided, func(a Approval) bool { return a.Role != "" }) {
		if all, err = s.directory(ctx); err != nil {
			return nil, err
		}
	}
	j := &approver{store: s, who: who, policy: policy, allowed: map[string]map[agreement]int{}, denied: map[string]int{}}
	for i := range decided {
		j.add(&decided[i], s.stillAgree(all, &decided[i]))
	}
	for _, step := range past {
		j.spend(step)
	}
	return j, nil
}

type approver struct {
	store  *Store
	who    host.RunInfo
	policy Policy

	mu      sync.Mutex
	allowed map[string]map[agreement]int // how often, by digest and by whom
	denied  map[string]int               // how often, by digest
}

// agreement is by whom an effect was allowed: so many people with a role, who have it now.
type agreement struct {
	role   string
	people int
}

// covers reports whether the right people have agreed. Those with a role decide only
// about what needs that role.
func (a agreement) covers(d Demand) bool { return a.role == d.Role && a.people >= d.Count }

// add adds a decision about the run. people is how many agreed and have the role now.
func (j *approver) add(a *Approval, people int) {
	switch {
	case a.State == Allowed: // the whole plan as it was shown
		by := agreement{a.Role, people}
		for _, p := range a.Plan {
			for digest := range strings.FieldsSeq(p.Digest) {
				if j.allowed[digest] == nil {
					j.allowed[digest] = map[agreement]int{}
				}
				j.allowed[digest][by]++
			}
		}
	case a.State == Denied && len(a.Plan) > 0: // the effect that was asked about
		first, _, _ := strings.Cut(a.Plan[0].Digest, " ")
		j.denied[first]++
	}
}

// spend removes a step that the run has already done.
func (j *approver) spend(step host.Step) {
	digest := step.Digest()
	if j.denied[digest] > 0 && step.Err != nil && step.Err.Code == fault.Denied {
		j.denied[digest]--
		return
	}
	most := map[string]agreement{} // by role: which of them allowed it is not recorded, so each is used up
	for by, left := range j.allowed[digest] {
		if before, ok := most[by.role]; left > 0 && (!ok || by.people > before.people) {
			most[by.role] = by
		}
	}
	for _, by := range most {
		j.allowed[digest][by]--
	}
}

// Decide decides one effect.
func (j *approver) Decide(ctx context.Context, e host.Effect) (host.Decision, error) {
	always := j.who.AskAlways && changes(e)
	subject, space := j.store.subjectOf(ctx, e)
	demand, needed := j.policy.demand(ctx, e, subject, space)
	if !always && !needed {
		return host.Allow, nil
	}
	if verdict := j.takeDecision(e.Digest(), demand); verdict != host.Ask {
		return verdict, nil
	}
	verdict, err := j.store.remembered(ctx, subject, space, j.who.Hash)
	if (always || demand.Role != "") && verdict == host.Allow {
		verdict = host.Ask
	}
	return verdict, err
}

// DecideCall decides a call that no script makes, as the first attempt at a run of its own;
// hash identifies the call with its arguments. The default is for what servers do: tools of
// ours need approval where a rule names them.
func (s *Store) DecideCall(ctx context.Context, e host.Effect, hash string) (host.Decision, error) {
	policy := s.Policy()
	if policy.Empty() {
		return host.Allow, nil
	}
	if ref, ok := e.Tool(); ok && ref.Space == "" {
		policy.Default = Never
	}
	j := &approver{store: s, who: host.RunInfo{Hash: hash}, policy: policy}
	return j.Decide(ctx, e)
}

// takeDecision uses up a decision about such an effect of this run.
func (j *approver) takeDecision(digest string, d Demand) host.Decision {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.denied[digest] > 0 {
		j.denied[digest]--
		return host.Deny
	}
	for by, left := range j.allowed[digest] {
		if left > 0 && by.covers(d) {
			j.allowed[digest][by]--
			return host.Allow
		}
	}
	return host.Ask
}
