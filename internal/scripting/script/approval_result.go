package script

import (
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
)

// ResumeResult is the outcome of a run that resumed after its approval.
type ResumeResult struct {
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *ResumeError    `json:"error,omitempty"`
	Output   []OutputLine    `json:"output"`
	Warnings []string        `json:"warnings,omitempty"`
	Status   string          `json:"status,omitempty"` // StatusWaiting if it waits again
	Approval *PendingInfo    `json:"approval,omitempty"`
}

// ResumeError is why the run failed.
type ResumeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// OutputLine is a line that the run printed.
type OutputLine struct {
	Stream string `json:"stream"`
	Level  string `json:"level,omitempty"`
	Text   string `json:"text"`
}

func newResumeResult(done Turn, err error) ResumeResult {
	a := ResumeResult{Result: done.Result, Output: make([]OutputLine, len(done.Output)), Warnings: done.Warnings}
	for i, line := range done.Output {
		a.Output[i] = OutputLine{line.Stream, line.Level, line.Text}
	}
	var pending *PendingError
	var failed *Error
	switch {
	case errors.As(err, &pending):
		w := pending.Info()
		a.Status, a.Approval = StatusWaiting, &w
		return a
	case errors.As(err, &failed):
		err = failed.Fault()
	}
	if err != nil {
		f := fault.From(err)
		a.Error = &ResumeError{string(f.Code), f.Error(), fault.HintOf(f)}
	}
	return a
}
