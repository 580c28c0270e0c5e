package script

import (
	"fmt"
	"sync"

	"github.com/luanette/luanette/internal/core/tool"
)

// progressReport passes the progress of a run to its caller: what the script reports, and
// what the tools report that it calls. Progress never decreases, because clients may
// ignore a report that does.
type progressReport struct {
	caller *tool.Caller

	mu    sync.Mutex
	begun bool // something was reported
	last  float64
}

// smallStep is by how much a report increases the progress if nothing else does.
const smallStep = 1e-6

// script reports what the script said: a fraction of the whole run.
func (r *progressReport) script(fraction float64, message string) {
	r.report(func(last float64) float64 {
		if fraction > last || !r.begun {
			return fraction
		}
		return last + smallStep
	}, message)
}

// tool reports the progress of a tool that the script waits for. How much of the run it is
// is unknown, so it is only a message.
func (r *progressReport) tool(ref tool.Ref, p tool.Progress) {
	text := ref.String()
	if p.Message != "" {
		text += ": " + p.Message
	}
	if p.Total > 0 {
		text += fmt.Sprintf(" (%g of %g)", p.Progress, p.Total)
	}
	r.report(func(last float64) float64 { return last + smallStep }, text)
}

func (r *progressReport) report(next func(last float64) float64, message string) {
	if r.caller == nil || r.caller.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.begun = min(next(r.last), 1), true
	r.caller.Progress(tool.Progress{Progress: r.last, Total: 1, Message: message})
}
