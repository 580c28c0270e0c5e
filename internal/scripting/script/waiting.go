package script

import (
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// PendingInfo tells whoever made a call that its script waits for somebody's word.
type PendingInfo struct {
	ID        string         `json:"approval_id"`
	Subject   string         `json:"subject"`
	Plan      []host.Planned `json:"plan"`
	Certain   bool           `json:"certain"`
	Complete  bool           `json:"complete"`
	ExpiresAt time.Time      `json:"expires_at"`
}

// Info is the same as data.
func (p *PendingError) Info() PendingInfo {
	return PendingInfo{p.ID, p.Effect.DisplayName(), p.Plan, p.Certain, p.Complete, p.Expires.UTC()}
}

// Text says what it waits for and how to go on.
func (w PendingInfo) Text() string {
	text := fmt.Sprintf("Waiting for approval %s of %s.\n%s", w.ID, w.Subject, host.PlanText(w.Plan))
	if !w.Complete {
		text += "\nThe plan may go on: it could not be rehearsed to its end."
	}
	return text + fmt.Sprintf("\nA person decides with `luanette approval allow %s` (or deny), or with approval_decide; approval_status tells what became of it.", w.ID)
}

// StatusWaiting is the status in the answer of a tool whose script waits.
const StatusWaiting = "pending_approval"

// waitingResult is the answer of a tool whose script waits. It is no failure: the
// script goes on when the word is given.
func waitingResult(p *PendingError, o Outcome) tool.Result {
	w := p.Info()
	result, err := tool.Output(w.Text(), map[string]any{"status": StatusWaiting, "approval": w})
	if err != nil {
		return tool.Failure(err)
	}
	return withOutput(result, o.Output)
}
