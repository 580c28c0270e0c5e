package script

import (
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
)

// Aftermath is what became of a run after its approval.
type Aftermath struct {
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Mishap         `json:"error,omitempty"`
	Output   []Spoken        `json:"output"`
	Warnings []string        `json:"warnings,omitempty"`
	Status   string          `json:"status,omitempty"` // StatusWaiting, when it waits again
	Approval *Waiting        `json:"approval,omitempty"`
}

// Mishap is why it failed.
type Mishap struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Spoken is a line it said.
type Spoken struct {
	Stream string `json:"stream"`
	Level  string `json:"level,omitempty"`
	Text   string `json:"text"`
}

func newAftermath(done Turn, err error) Aftermath {
	a := Aftermath{Result: done.Result, Output: make([]Spoken, len(done.Output)), Warnings: done.Warnings}
	for i, line := range done.Output {
		a.Output[i] = Spoken{line.Stream, line.Level, line.Text}
	}
	var pending *Pending
	var failed *Error
	switch {
	case errors.As(err, &pending):
		w := pending.Waiting()
		a.Status, a.Approval = StatusWaiting, &w
		return a
	case errors.As(err, &failed):
		err = failed.Fault()
	}
	if err != nil {
		f := fault.From(err)
		a.Error = &Mishap{string(f.Code), f.Error(), fault.HintOf(f)}
	}
	return a
}
