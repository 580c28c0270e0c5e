package host

import "time"

// RunInfo is a run as those see it who approve what it does.
type RunInfo struct {
	Key      string // "job:…" or "run:…": the same for every attempt at the run
	Owner    string // the user whose it is; "" where users are not told apart
	Name     string // how the script is called
	Hash     string // of its source
	Language string
}

// Paused is a run that stopped at an effect somebody must be asked about, with
// what it would do from there on.
type Paused struct {
	RunInfo
	Effect   Effect       // the one it stopped at
	Plan     []Planned    // beginning with that
	Certain  bool         // nothing in the plan came after a made-up answer
	Complete bool         // the plan goes to the script's end
	Output   []OutputLine // what it said before
	Kept     []byte       // what is needed to go on, for whoever made it; nil when that is known elsewhere
}

// NewPaused tells of a run that stopped at a gate; complete is whether its script
// came to its end.
func NewPaused(who RunInfo, g *Approval, complete bool, said []OutputLine) Paused {
	return Paused{
		RunInfo: who, Effect: *g.Paused(), Plan: g.Rehearsal().Plan(), Certain: g.Rehearsal().Certain(),
		Complete: complete, Output: said,
	}
}

// PendingError is a question somebody has yet to answer.
type Pending struct {
	ID      string
	Expires time.Time // when no answer counts as no
}

// ToolResult is what somebody said about a paused run.
type Answer struct {
	Allow    bool
	Remember string // "", or for what the answer holds from now on: "tool", "namespace", "script"
	By       string // who
}
