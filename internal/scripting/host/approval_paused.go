package host

import "time"

// RunInfo describes a run to those who approve its effects.
type RunInfo struct {
	Key      string // "job:…" or "run:…": the same for every attempt at the run
	Owner    string // the user it belongs to; "" where users are not distinguished
	Name     string // the script's name
	Hash     string // of its source
	Language string
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
	Output      []OutputLine // before the pause
	ResumeState []byte       // state needed to resume the run; nil if it is stored elsewhere
}

// NewPaused describes a run that g paused. complete is whether the rehearsal ran to the
// script's end.
func NewPaused(who RunInfo, g *Approval, complete bool, said []OutputLine) Paused {
	return Paused{
		RunInfo: who, Effect: *g.Paused(), Plan: g.Rehearsal().Plan(), Certain: g.Rehearsal().Certain(),
		Complete: complete, Output: said,
	}
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
	By       string // the person who decided
}
