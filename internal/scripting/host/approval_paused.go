package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
)

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
}
