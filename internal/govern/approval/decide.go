package approval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// Decision is what one person said about a request.
type Decision struct {
	By     Party
	Person string // whose role counts: the decider's own, or that of whoever named them
	Allow  bool
	At     time.Time

	plan    string // hash of the plan that it is about
	carrier string // the process that continues the run; empty: whichever looks first
}

// same reports whether two decisions are one person's, or stand for one person.
func (d Decision) same(other Decision) bool {
	return d.By.is(other.By) || d.Person != "" && d.Person == other.Person || d.By.User != "" && d.By.User == other.Person || d.Person != "" && d.Person == other.By.User
}

// Agreed returns how many people have agreed so far to what the plan shows now.
func (a *Approval) Agreed() (n int) {
	for _, d := range a.current() {
		if d.Allow {
			n++
		}
	}
	return n
}

// current returns the decisions about the plan as it is now.
func (a *Approval) current() (list []Decision) {
	plan := a.PlanDigest()
	for _, d := range a.Decisions {
		if d.plan == plan {
			list = append(list, d)
		}
	}
	return list
}

// PlanDigest identifies the plan, with the arguments and what they change.
func (a *Approval) PlanDigest() string { return host.PlanDigest(a.Plan) }

// planTime is how long making a plan again may take.
const planTime = 30 * time.Second

// Open is Get for somebody who looks at a request: a pending one shows what would happen
// now.
func (s *Store) Open(ctx context.Context, owner, id string) (Approval, error) {
	a, err := s.Get(ctx, owner, id)
	if err != nil {
		return a, err
	}
	_, err = s.remake(ctx, &a)
	return a, err
}

// remake makes the plan of a pending request again, and reports whether it has changed. A
// plan that cannot be made now stays as it is.
func (s *Store) remake(ctx context.Context, a *Approval) (changed bool, err error) {
	if a.State != Pending || s.options.Plan == nil {
		return false, nil
	}
	within, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	plan, err := host.Remake(within, a.Plan, func(ctx context.Context) (host.Plan, error) { return s.options.Plan(ctx, a) })
	if err != nil || plan == nil || !sameEffect(a.Plan, plan.Entries) {
		return false, nil // the job may not have started yet, or its server is away
	}
	if err := s.storePlan(ctx, a, *plan); err != nil {
		return false, fault.Wrap(fault.Internal, err, "store the plan of approval %s", a.ID)
	}
	a.Plan, a.Certain, a.Complete, a.Incomplete = plan.Entries, plan.Certain, plan.Incomplete == "", plan.Incomplete
	return true, nil
}

// sameEffect reports whether two plans begin with the same effect, the one that waits.
func sameEffect(a, b []host.Planned) bool {
	return len(a) > 0 && len(b) > 0 && firstDigest(a) == firstDigest(b)
}

func firstDigest(plan []host.Planned) string {
	digest, _, _ := strings.Cut(plan[0].Digest, " ")
	return digest
}

// errChanged is the error of a decision about a plan that was not shown like this.
func errChanged(a *Approval) error {
	plan := host.Plan{Entries: a.Plan, Certain: a.Certain, Incomplete: a.Incomplete}
	return fault.Wrap(fault.Conflict, &host.PlanChanged{Approval: a.ID, Plan: plan}, "nothing was decided").
		WithHint("look at the plan, and decide again").WithDetails(map[string]any{"approval_id": a.ID, "plan_digest": a.PlanDigest()})
}

// Decide stores what the principal of ctx says about an approval. It stays pending until
// as many people have agreed as it needs; one denial decides it. If it is decided
// already, the error is fault.Conflict; if the principal may not decide it, fault.Denied.
func (s *Store) Decide(ctx context.Context, owner, id string, answer host.Answer) (Approval, error) {
	a, err := s.Get(ctx, owner, id)
	if err != nil {
		return a, err
	}
	return s.decide(ctx, a, answer)
}

// Answer is Decide for a caller that was asked about its own run.
func (s *Store) Answer(ctx context.Context, id string, answer host.Answer) error {
	a, err := s.load(ctx, id)
	if err == nil {
		_, err = s.decide(asked(ctx), a, answer)
	}
	return err
}

func (s *Store) decide(ctx context.Context, a Approval, answer host.Answer) (Approval, error) {
	by := partyOf(principal.Of(ctx))
	by.Agent = answer.By
	answer.By = by.Title()
	rule, err := s.ruleFor(ctx, &a, answer)
	if err != nil {
		return a, err
	}
	if a.State != Pending {
		return a, errDecided(&a)
	}
	d := Decision{By: by, Allow: answer.Allow, At: s.now(), carrier: s.process}
	if answer.Later {
		d.carrier = ""
	}
	if d.Person, err = s.authorize(ctx, &a, answer.Allow); err != nil {
		return a, err
	}
	changed, err := s.remake(ctx, &a)
	switch {
	case err != nil:
		return a, err
	case answer.Allow && (changed || answer.Plan != "" && answer.Plan != a.PlanDigest()): // a denial is of any plan
		return a, errChanged(&a)
	}
	d.plan = a.PlanDigest()
	now, done, err := s.settle(ctx, a.ID, d, answer.By, rule)
	switch {
	case err != nil && fault.CodeOf(err) == fault.Conflict:
		return now, err
	case err != nil:
		return a, fault.Wrap(fault.Internal, err, "store the decision")
	case !done && now.State != Pending:
		return now, errDecided(&now)
	case !done:
		s.publish(ctx, &now, Agreed{ID: now.ID, Run: now.Key, Subject: now.Subject, By: d.By.Title(), Agreed: now.Agreed(), Needed: now.Needed})
		s.audit(ctx, "approval.agreed", &now)
		return now, nil
	}
	s.announce(ctx, now)
	s.audit(ctx, "approval."+string(now.State), &now)
	return now, nil
}

func errDecided(a *Approval) error {
	return fault.New(fault.Conflict, "approval %s is %s already", a.ID, a.State).WithHint("approval_list shows what is pending")
}

func (s *Store) audit(ctx context.Context, action string, a *Approval) {
	if s.options.Audit != nil {
		s.options.Audit(ctx, action, a.Subject, []byte(a.ID))
	}
}

// Refusal returns why the principal of ctx may not allow a request, or nil.
func (s *Store) Refusal(ctx context.Context, a *Approval) error { return s.refusal(ctx, a) }

func (s *Store) refusal(ctx context.Context, a *Approval) error {
	person, err := s.authorize(ctx, a, true)
	if err != nil {
		return err
	}
	d := Decision{By: partyOf(principal.Of(ctx)), Person: person}
	if slices.ContainsFunc(a.current(), d.same) {
		return errAgreed(a)
	}
	return nil
}

func errAgreed(a *Approval) error {
	return fault.New(fault.Conflict, "you have decided about approval %s already", a.ID).
		WithHint("%d of %d have agreed; somebody else must agree too", a.Agreed(), a.Needed)
}

// authorize returns an error if the principal of ctx may not decide a request. Where a
// role is needed, it returns the person whose role counts. Whoever asked may always
// deny.
func (s *Store) authorize(ctx context.Context, a *Approval, allow bool) (person string, err error) {
	who := principal.Of(ctx)
	switch own := a.Asker.is(partyOf(who)); {
	case slices.ContainsFunc(a.current(), func(d Decision) bool { return d.By.is(partyOf(who)) }):
		return "", errAgreed(a)
	case own && !allow:
		return "", nil
	case own && (a.Role != "" || !s.mayDecideOwn(ctx, who)):
		return "", fault.New(fault.Denied, "nobody approves their own request: %s asked for approval %s", who.Title(), a.ID).
			WithHint("%s", otherDeciders(a.Role))
	case a.Role == "" && !own && !who.Admin():
		return "", fault.New(fault.Denied, "approval %s is decided by an administrator", a.ID)
	case a.Role == "":
		return "", nil
	}
	return s.holder(ctx, who, a)
}

func otherDeciders(role string) string {
	if role != "" {
		return "somebody else with the role " + role + " decides"
	}
	return "an administrator decides, with another key or as another person; approve_own = true in luanette.toml permits it"
}

type askedKey struct{}

// asked returns ctx for the answer of the person whose own client asked them.
func asked(ctx context.Context) context.Context { return context.WithValue(ctx, askedKey{}, true) }

// mayDecideOwn reports whether a principal may allow what it asked for itself: by the
// settings, and as the only person who uses the server. The person at a guest's client decides
// what the client asks for, where they are asked.
func (s *Store) mayDecideOwn(ctx context.Context, who principal.Principal) bool {
	return s.Policy().Own || who.IsGuest() && ctx.Value(askedKey{}) != nil || who.ID == principal.LocalID && (s.options.Alone == nil || s.options.Alone(ctx))
}

// settle stores what one person said and, if that decides the request, its new state and
// the rule to remember. done is false if it stays pending, or was decided before. The run
// continues in the process that stored the last decision.
func (s *Store) settle(ctx context.Context, id string, d Decision, by string, r *Rule) (a Approval, done bool, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		done = false
		if a, err = loadIn(ctx, tx, id); err != nil || a.State != Pending {
			return err
		}
		if a.PlanDigest() != d.plan {
			return errChanged(&a)
		}
		if slices.ContainsFunc(a.current(), d.same) {
			return errAgreed(&a)
		}
		if err := insertDecision(ctx, tx, id, d); err != nil {
			return err
		}
		a.Decisions = append(slices.DeleteFunc(a.Decisions, func(before Decision) bool { return before.By.ID == d.By.ID }), d)
		if d.Allow && a.Agreed() < a.Needed {
			return nil
		}
		a.State, a.Decided, a.By, done = Denied, d.At, by, true
		if d.Allow {
			a.State = Allowed
		}
		if len(a.current()) > 1 || a.Role != "" {
			a.By = a.deciders()
		}
		return errors.Join(s.close(ctx, tx, &a, d.carrier), saveRule(ctx, tx, r, d))
	})
	return a, done && err == nil, err
}

// deciders names those whose decision counted: all who agreed, or who denied.
func (a *Approval) deciders() string {
	var names []string
	for _, d := range a.current() {
		if d.Allow == (a.State == Allowed) {
			names = append(names, d.By.Title())
		}
	}
	return strings.Join(names, ", ")
}

// ruleFor returns the rule that an answer asks to remember, or nil.
func (s *Store) ruleFor(ctx context.Context, a *Approval, answer host.Answer) (*Rule, error) {
	r := &Rule{ID: newID("r-"), Scope: answer.Remember, Allow: answer.Allow, By: answer.By}
	switch answer.Remember {
	case "":
		return nil, nil
	case Tool:
		r.Subject = a.Subject
	case Namespace:
		r.Subject = a.Space
	case Script:
		r.Subject = a.Hash
	default:
		return nil, fault.New(fault.InvalidParams, "a decision cannot be remembered for %q", answer.Remember).
			WithHint("use %s, %s or %s, or omit it", Tool, Namespace, Script)
	}
	who := principal.Of(ctx)
	switch {
	case a.Role != "":
		return nil, fault.New(fault.InvalidParams, "decisions of the role %s are not remembered", a.Role).WithHint("each request is decided by itself")
	case a.Asker.is(partyOf(who)) && !s.mayDecideOwn(ctx, who):
		return nil, fault.New(fault.Denied, "a decision about your own request is not remembered").WithHint("deny it without that")
	}
	return r, nil
}
