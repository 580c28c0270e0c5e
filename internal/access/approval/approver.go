package approval

import (
	"context"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

// Approver returns an approver for one run. It decides by the decisions about the run
// itself, less the steps that are already in its journal, then by remembered
// decisions, then by the policy. It is nil when nothing needs approval.
func (o *Store) Approver(ctx context.Context, who host.RunInfo, past []host.Step) (host.Approver, error) {
	policy := o.Policy()
	if policy.Empty() && !who.AskAlways {
		return nil, nil
	}
	decided, err := o.ofRun(ctx, who.Key)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the decisions about the run")
	}
	j := &approver{store: o, who: who, policy: policy, allowed: map[string]int{}, denied: map[string]int{}}
	for _, a := range decided {
		j.add(a)
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

	mu              sync.Mutex
	allowed, denied map[string]int // how often, by digest
}

// add adds a decision about the run.
func (j *approver) add(a Approval) {
	switch {
	case a.State == Allowed: // the whole plan as it was shown
		for _, p := range a.Plan {
			for digest := range strings.FieldsSeq(p.Digest) {
				j.allowed[digest]++
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
	} else if j.allowed[digest] > 0 {
		j.allowed[digest]--
	}
}

// Decide decides one effect.
func (j *approver) Decide(ctx context.Context, e host.Effect) (host.Decision, error) {
	always := j.who.AskAlways && changes(e)
	if !always && !j.policy.needsApproval(e) && (j.policy.Also == nil || !j.policy.Also(ctx, e)) {
		return host.Allow, nil
	}
	if verdict := j.takeDecision(e.Digest()); verdict != host.Ask {
		return verdict, nil
	}
	subject, space := subjectOf(e)
	verdict, err := j.store.remembered(ctx, subject, space, j.who.Hash)
	if always && verdict == host.Allow {
		verdict = host.Ask
	}
	return verdict, err
}

// takeDecision uses up a decision about such an effect of this run.
func (j *approver) takeDecision(digest string) host.Decision {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.denied[digest] > 0:
		j.denied[digest]--
		return host.Deny
	case j.allowed[digest] > 0:
		j.allowed[digest]--
		return host.Allow
	default:
		return host.Ask
	}
}
