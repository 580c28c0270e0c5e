package agent

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
)

// Journal stores the steps of a turn, so that a turn that was interrupted continues where
// it was: it neither asks the model for the same answer again nor repeats a call.
type Journal interface {
	// Load returns the steps that were saved, in any order.
	Load(ctx context.Context) ([]Step, error)
	// Save stores a step and replaces an earlier one of the same position. It is called by
	// several goroutines at a time.
	Save(ctx context.Context, s Step) error
}

// Step is one step of a turn: an answer of the model, or one of the tool calls that it
// asked for.
type Step struct {
	Iteration int             // from 1
	Call      int             // 0 is the model's answer, 1 the first of its tool calls
	Data      json.RawMessage // as it is restored; empty if the call has begun and its outcome is unknown
}

// journal is the Journal of a turn; all methods work without one.
type journal struct {
	store Journal // may be nil
	steps map[[2]int]json.RawMessage
}

func openJournal(ctx context.Context, store Journal) (*journal, error) {
	j := &journal{store: store, steps: map[[2]int]json.RawMessage{}}
	if store == nil {
		return j, nil
	}
	steps, err := store.Load(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), err, "read the turn's journal")
	}
	for _, s := range steps {
		j.steps[[2]int{s.Iteration, s.Call}] = s.Data
	}
	return j, nil
}

// restore reads a step into v. begun means that the step was begun before, done that its
// outcome is known.
func (j *journal) restore(iteration, call int, v any) (begun, done bool) {
	data, begun := j.steps[[2]int{iteration, call}]
	return begun, begun && len(data) > 0 && json.Unmarshal(data, v) == nil
}

// save stores a step; v is nil if its outcome is not known yet.
func (j *journal) save(ctx context.Context, iteration, call int, v any) error {
	if j.store == nil {
		return nil
	}
	s := Step{Iteration: iteration, Call: call}
	if v != nil {
		var err error
		if s.Data, err = json.Marshal(v); err != nil {
			return fault.Wrap(fault.Internal, err, "encode a step of the turn")
		}
	}
	if err := j.store.Save(ctx, s); err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "store a step of the turn")
	}
	return nil
}

// resultStep is the result of a tool call as it is stored.
type resultStep struct {
	Text   string      `json:"text"`
	Failed bool        `json:"failed,omitempty"`
	Media  []llm.Media `json:"media,omitempty"`

	Approval string `json:"approval,omitempty"` // that it waits for, in place of a result
}

// unknownOutcome is what the model gets for a call that an interruption left open.
func unknownOutcome(shown string) error {
	return fault.New(fault.Conflict, "the server stopped while %s ran: the call may or may not have happened", shown).
		WithHint("it was not repeated. Find out whether it happened if a tool can tell; otherwise say so, and do not call it again unless the person agrees")
}
