package script

import (
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// PendingInfo tells the caller that the script waits for approval.
type PendingInfo struct {
	ID        string         `json:"approval_id"`
	Subject   string         `json:"subject"`
	Plan      []host.Planned `json:"plan"`
	Certain   bool           `json:"certain"`
	Complete  bool           `json:"complete"`
	ExpiresAt time.Time      `json:"expires_at"`

	Incomplete string `json:"incomplete,omitempty"` // why the plan is not complete
	PlanDigest string `json:"plan_digest"`          // for approval_decide
}

// Info returns the same as data.
func (p *PendingError) Info() PendingInfo {
	return PendingInfo{
		ID: p.ID, Subject: p.Effect.DisplayName(), Plan: p.Plan, Certain: p.Certain, Complete: p.Complete, ExpiresAt: p.Expires.UTC(),
		Incomplete: p.Incomplete, PlanDigest: host.PlanDigest(p.Plan),
	}
}

// Text says what the script waits for and how to continue.
func (w PendingInfo) Text() string {
	text := fmt.Sprintf("Waiting for approval %s of %s.\n%s", w.ID, w.Subject, host.PlanText(w.Plan))
	if !w.Complete {
		text += "\n" + IncompleteText(w.Incomplete)
	}
	return text + fmt.Sprintf("\nA person decides with `luanette approval allow %s` (or deny), or with approval_decide; approval_status shows the outcome.", w.ID)
}

// StatusWaiting is the status in the result of a tool whose script waits.
const StatusWaiting = tool.StatusPending

// waitingResult is the result of a tool whose script waits. It is not a failure: the
// script continues after the decision.
func waitingResult(p *PendingError, o Outcome) tool.Result {
	w := p.Info()
	result, err := tool.Output(w.Text(), map[string]any{"status": StatusWaiting, "approval": w})
	if err != nil {
		return tool.Failure(err)
	}
	return withOutput(result, o.Output)
}

// IncompleteText says why a plan ends before the script does.
func IncompleteText(why string) string {
	if why == "" {
		return "The plan may be incomplete."
	}
	return "The plan may be incomplete: with the made-up answers the script ended early, with " + why
}
