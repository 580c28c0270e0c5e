package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/tool"
)

// Approver decides whether an effect may happen. It is safe for concurrent use.
type Approver interface {
	Decide(ctx context.Context, e Effect) (Decision, error)
}

// Decision is an Approver's decision about an effect.
type Decision uint8

// The decisions.
const (
	Allow Decision = iota
	Deny           // the effect is refused with an error
	Ask            // a person must be asked first
)

// Approval is a Handler for runs in which some effects need a person's approval. At the
// first effect that has no decision yet, the run pauses: the script continues as a
// rehearsal, so that the person sees what else it would do, and its outcome is
// discarded. When the decision is known, the script runs again and its journal answers
// what was already done.
type Approval struct {
	then     Handler
	approver Approver
	ahead    *Rehearsal

	mu     sync.Mutex
	paused *Effect
}

// NewApproval passes effects that approver allows to then. Those after a pause are rehearsed,
// with tools mocked as in NewRehearsal.
func NewApproval(then Handler, approver Approver, tools tool.Source) *Approval {
	return &Approval{then: then, approver: approver, ahead: NewRehearsal(tools, approver, nil)}
}

// errPaused is the outcome of a nested run that has paused.
var errPaused = errors.New("the script waits for approval")

// Handle passes the effect on, refuses it, or pauses the run.
func (g *Approval) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	switch {
	case e.Kind == Observe && g.Paused() == nil:
		return live(ctx)
	case e.Kind == Observe:
		return nil, nil // output after the pause is discarded
	case g.Paused() != nil:
		return g.ahead.Handle(ctx, e, live)
	case e.Kind == Nondeterministic || e.TempOnly || e.function().Starts:
		return g.then.Handle(ctx, e, live)
	}
	verdict, err := g.approver.Decide(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case verdict == Allow && e.Kind == Nested:
		return g.nested(ctx, e, live)
	case verdict == Allow:
		return g.then.Handle(ctx, e, live)
	case verdict == Deny:
		return g.then.Handle(ctx, e, func(context.Context) ([]Value, error) { return nil, denied(e) })
	}
	if e.check != nil { // nobody is asked about what would be refused
		if refused := e.check(ctx); refused != nil {
			return g.then.Handle(ctx, e, func(context.Context) ([]Value, error) { return nil, refused })
		}
	}
	g.pause(e)
	return g.ahead.Handle(ctx, e, live)
}

// nested runs a nested script. If it pauses, the call has no outcome yet.
func (g *Approval) nested(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	var values []Value
	var problem error
	recorded, err := g.then.Handle(ctx, e, func(ctx context.Context) ([]Value, error) {
		values, problem = live(ctx)
		if g.Paused() != nil {
			return nil, errPaused
		}
		return values, problem
	})
	if errors.Is(err, errPaused) {
		return values, problem
	}
	return recorded, err
}

func (g *Approval) pause(e Effect) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused == nil {
		g.paused = &e
	}
}

// Paused returns the effect that needs a decision, or nil.
func (g *Approval) Paused() *Effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// Rehearsing is true after the run has paused.
func (g *Approval) Rehearsing() bool { return g.Paused() != nil }

// Rehearsal returns the rehearsal after the pause. The first entry of its plan is the
// effect that needs a decision.
func (g *Approval) Rehearsal() *Rehearsal { return g.ahead }

func denied(e Effect) error {
	return fault.New(fault.Denied, "%s was not approved", e.DisplayName()).
		WithHint("the request was denied; continue without it, or ask the person who decided")
}

var _ Handler = (*Approval)(nil)

// RunInfo describes a run to those who approve its effects.
type RunInfo struct {
	Key      string // "job:…" or "run:…": the same for every attempt at the run
	Owner    string // the user it belongs to; "" where users are not distinguished
	Name     string // the script's name
	Hash     string // of its source
	Language string
	Agent    string // the client program that asked; "" if it is not known
	Undoes   string // the job that it undoes; "" for others
	// AskAlways means that all its changes need approval, whatever the policy and earlier
	// decisions say.
	AskAlways bool
}

// Paused is a run that stopped at an effect that needs approval, with what it would do
// after it.
type Paused struct {
	RunInfo
	Effect      Effect       // the one it stopped at
	Plan        []Planned    // begins with Effect
	Certain     bool         // no entry of the plan follows a mock
	Complete    bool         // the plan goes to the script's end
	Incomplete  string       // why it does not; "" if it does
	Output      []OutputLine // before the pause
	ResumeState []byte       // state needed to resume the run; nil if it is stored elsewhere
}

// NewPaused describes a run that g paused. failed is how its rehearsal failed; nil if it ran
// to the script's end.
func NewPaused(who RunInfo, g *Approval, failed error, said []OutputLine) Paused {
	p := NewPlan(g.Rehearsal(), failed)
	return Paused{
		RunInfo: who, Effect: *g.Paused(), Plan: p.Entries, Certain: p.Certain,
		Complete: p.Incomplete == "", Incomplete: p.Incomplete, Output: said,
	}
}

// Plan is what a run would do.
type Plan struct {
	Entries    []Planned `json:"plan"`
	Certain    bool      `json:"certain"`              // no entry follows a mock
	Incomplete string    `json:"incomplete,omitempty"` // why it ends too early; "" if it goes to the script's end
}

// NewPlan returns the plan of a rehearsal that failed with an error, or ended.
func NewPlan(r *Rehearsal, failed error) Plan {
	p := Plan{Entries: r.Plan(), Certain: r.Certain()}
	if failed != nil {
		p.Incomplete = redact.Cut(reason(failed), 300)
	}
	return p
}

// reason is an error in one line. Those of scripts have a heading above it.
func reason(err error) string {
	if f, ok := errors.AsType[interface {
		error
		Fault() *fault.Error
	}](err); ok {
		return strings.TrimSpace(f.Fault().Error())
	}
	return strings.TrimSpace(err.Error())
}

// PlanDigest identifies a plan as people see it: with what each entry changes.
func PlanDigest(plan []Planned) string {
	sum := sha256.New()
	for i := range plan {
		fmt.Fprintf(sum, "%s\n%s\n%d %s\n%d %s\n", plan[i].Digest, plan[i].Action, len(plan[i].Diff), plan[i].Diff, len(plan[i].Unread), plan[i].Unread)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// same reports whether two entries show the same.
func (p Planned) same(other Planned) bool {
	return PlanDigest([]Planned{p}) == PlanDigest([]Planned{other})
}

// Remake makes the plan of a run again. It returns nil if it is as it was shown. An entry
// that is another one each time it is made, because the script draws a number or asks the
// time, is no change.
func Remake(ctx context.Context, shown []Planned, plan func(context.Context) (Plan, error)) (*Plan, error) {
	now, err := plan(ctx)
	if err != nil || len(now.Entries) == 0 || PlanDigest(now.Entries) == PlanDigest(shown) {
		return nil, err
	}
	again, err := plan(ctx)
	if err != nil {
		return nil, err
	}
	if len(shown) == len(now.Entries) && len(now.Entries) == len(again.Entries) {
		changed := false
		for i := range shown {
			changed = changed || !shown[i].same(now.Entries[i]) && now.Entries[i].same(again.Entries[i])
		}
		if !changed {
			return nil, nil
		}
	}
	return &now, nil
}

// PlanChanged is the error of a decision about a plan that is no longer what would happen.
type PlanChanged struct {
	Approval string
	Plan
}

func (e *PlanChanged) Error() string {
	return fmt.Sprintf("the plan of approval %s has changed since it was shown. Now:\n%s", e.Approval, PlanText(e.Entries))
}

// Pending is a request for approval that is not decided yet.
type Pending struct {
	ID      string
	Expires time.Time // when the request counts as denied
	Others  bool      // the caller may not decide it: somebody else must
}

// Answer is a person's decision about a paused run.
type Answer struct {
	Allow    bool
	Remember string // "", or the scope of a rule to store: "tool", "namespace", "script"
	By       string // the person or program that decided, if the principal does not say
	Plan     string // PlanDigest of the plan that was shown; "" is the one that is stored
	Later    bool   // the caller does not wait for the run: whichever process looks next continues it
}

// ResumeStore records a run that resumes after its approval, so that another process can
// continue it after a crash.
type ResumeStore interface {
	Recorder
	// Past returns what a process that crashed had recorded.
	Past(ctx context.Context) ([][]byte, error)
	// Finish stores the outcome of the run and ends it.
	Finish(ctx context.Context, outcome json.RawMessage) error
}
