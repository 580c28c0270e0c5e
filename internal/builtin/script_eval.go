package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

type evalIn struct {
	Code      string `json:"code" jsonschema:"an expression, statements with a return, or with params a script that defines main(params)" min:"1" max:"1048576"`
	Language  string `json:"language,omitempty" jsonschema:"of the code; default: the session's, otherwise lua" enum:"lua,javascript"`
	Params    Object `json:"params,omitempty" jsonschema:"if given, main(params) is called with it"`
	SessionID string `json:"session_id,omitempty" jsonschema:"the session to run in, whose globals persist: its id, or a name of your choice, which creates it on first use; default: a fresh environment" max:"64"`
}

// Evaluated is the result of lua_eval, without the value that the code returned, which can be
// anything and so is not in the schema.
type Evaluated struct {
	DurationMS int64        `json:"duration_ms"`
	Output     []OutputLine `json:"output" jsonschema:"what it printed and logged"`
	Warnings   []string     `json:"warnings,omitempty" jsonschema:"values that could not be saved"`
	Status     string       `json:"status,omitempty" jsonschema:"pending_approval if the code waits for approval: then result is null, and approval has its plan"`
}

// OutputLine is one line a script printed or logged.
type OutputLine struct {
	Stream string `json:"stream" jsonschema:"stdout, stderr or log"`
	Level  string `json:"level,omitempty" jsonschema:"of a log line"`
	Text   string `json:"text"`
}

func outputLines(lines []host.OutputLine) []OutputLine {
	said := make([]OutputLine, len(lines))
	for i, line := range lines {
		said[i] = OutputLine{line.Stream, line.Level, line.Text}
	}
	return said
}

func (t scriptTools) eval(ctx context.Context, call tool.Call, in evalIn) (tool.Result, error) {
	reportProgress(call.Caller, 0, "Running script")
	q := script.Request{Source: in.Code, Language: in.Language, Params: []byte(in.Params), Main: in.Params != nil, Caller: call.Caller}
	if in.SessionID == "" { // turns of a session have their own names
		q = attributed(call, q)
	}
	if q.Main && in.SessionID == "" { // sessions check params themselves, because describe() may need their globals
		prepared, err := t.runner.Prepare(ctx, q)
		if err != nil {
			return script.ToolFailure(script.Outcome{}, err), nil
		}
		q = prepared
	}
	done, err := t.runRequest(ctx, call, in.SessionID, q)
	var pending *script.PendingError
	if errors.As(err, &pending) {
		return waiting(pending, done.Outcome)
	}
	if err != nil {
		reportProgress(call.Caller, 1, "Failed")
		return script.ToolFailure(done.Outcome, err), nil
	}
	reportProgress(call.Caller, 1, "Complete")
	return tool.Output(evalText(done), struct {
		Result JSON `json:"result"`
		Evaluated
	}{done.Result, Evaluated{DurationMS: done.Duration.Milliseconds(), Output: outputLines(done.Output), Warnings: done.Warnings}})
}

// waiting is the result while the code waits for approval.
func waiting(p *script.PendingError, o script.Outcome) (tool.Result, error) {
	w := p.Info()
	return tool.Output(w.Text(), struct {
		Result JSON `json:"result"`
		Evaluated
		Approval script.PendingInfo `json:"approval"`
	}{JSON("null"), Evaluated{DurationMS: o.Duration.Milliseconds(), Output: outputLines(o.Output), Status: script.StatusWaiting}, w})
}

// runRequest runs a request in a session, or without one if id is empty. The warnings of a
// turn that failed are added to the failure.
func (t scriptTools) runRequest(ctx context.Context, call tool.Call, id string, q script.Request) (script.Turn, error) {
	if id == "" {
		outcome, err := t.runner.Run(ctx, q)
		return script.Turn{Outcome: outcome}, err
	}
	done, err := t.sessions.Eval(ctx, ownerOf(call), id, q)
	var failed *script.Error
	if errors.As(err, &failed) {
		failed.Troubleshooting = append(failed.Troubleshooting, done.Warnings...)
	}
	return done, err
}

// evalText returns the result and output as text.
func evalText(o script.Turn) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Execution completed in %dms\nResult: %s", o.Duration.Milliseconds(), script.Pretty(o.Result))
	for i, line := range o.Output {
		if i == 0 {
			out.WriteString("\nOutput:")
		}
		fmt.Fprintf(&out, "\n  %s", line.Text)
	}
	for _, warning := range o.Warnings {
		fmt.Fprintf(&out, "\nWarning: %s", warning)
	}
	return out.String()
}

// reportProgress sends progress to the caller.
func reportProgress(caller *tool.Caller, progress float64, message string) {
	if caller != nil && caller.Progress != nil {
		caller.Progress(tool.Progress{Progress: progress, Total: 1, Message: message})
	}
}
