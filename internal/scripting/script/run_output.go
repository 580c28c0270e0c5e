package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// OutputKey is the key in a result's _meta with what the script printed and logged.
const OutputKey = "luanette/output"

// ToolResult is the result of a script called as a tool: the value it returned as
// structured content, or as {"result": value} if it is not a table with named fields,
// and the same as text.
func ToolResult(o Outcome) (tool.Result, error) {
	structured := o.Result
	if !rawjson.IsObject(structured) {
		structured = rawjson.Set(nil, "result", structured)
	}
	result, err := tool.Output(Pretty(o.Result), structured)
	return withOutput(result, o.Output), err
}

// ToolFailure is the result of a script that failed: the full error and the last lines
// it printed as text, the fault and all output as data in _meta. Other errors have the
// form of any tool's failure. A script that waits for approval is not a failure; its
// result says what it waits for.
func ToolFailure(o Outcome, err error) tool.Result {
	var pending *PendingError
	if errors.As(err, &pending) {
		return waitingResult(pending, o)
	}
	var failed *Error
	if !errors.As(err, &failed) {
		return withOutput(tool.Failure(err), o.Output)
	}
	raw := tool.Failure(failed.Fault()).Raw
	content := encode([]map[string]string{{"type": "text", "text": failed.Error() + lastLines(o.Output)}})
	return withOutput(tool.Result{Raw: rawjson.Set(raw, "content", content)}, o.Output)
}

func withOutput(r tool.Result, lines []host.OutputLine) tool.Result {
	if len(lines) == 0 || len(r.Raw) == 0 {
		return r
	}
	meta, _ := rawjson.Get(r.Raw, "_meta")
	return tool.Result{Raw: rawjson.Set(r.Raw, "_meta", rawjson.Set(meta, OutputKey, encode(lines)))}
}

// OutputHeading precedes the output at the end of a failure's text.
const OutputHeading = "\n\nOutput:\n"

// lastLines returns the last lines that a script printed before it failed.
func lastLines(lines []host.OutputLine) string {
	const enough = 10
	if len(lines) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString(OutputHeading)
	if skipped := len(lines) - enough; skipped > 0 {
		fmt.Fprintf(&out, "  … %d earlier lines\n", skipped)
		lines = lines[skipped:]
	}
	for _, line := range lines {
		fmt.Fprintf(&out, "  %s\n", shorten(line.Text, 400))
	}
	return strings.TrimRight(out.String(), "\n")
}

// Pretty formats a value for people: a string as it is, everything else as indented
// JSON.
func Pretty(value json.RawMessage) string {
	if text, ok := rawjson.Text(value); ok {
		return text
	}
	var out bytes.Buffer
	if json.Indent(&out, value, "", "  ") != nil {
		return string(value)
	}
	return out.String()
}

// liveLines limits the lines sent while a script runs. The result has all of them.
const liveLines = 1000

// LogMessage is one line of a run, sent to the caller while the script runs: the data of
// a log message from the logger "script".
type LogMessage struct {
	Number int64  `json:"number"` // 1, 2, 3 … in order
	Stream string `json:"stream"` // stdout, stderr or log
	Text   string `json:"text"`
}

// watch returns what receives the run's lines: the request's Watch, otherwise the
// caller, if it accepts log messages.
func (q Request) watch() func(host.OutputLine) {
	if q.Watch != nil || q.Caller == nil || q.Caller.Log == nil {
		return q.Watch
	}
	var said atomic.Int64
	return func(line host.OutputLine) {
		number := said.Add(1)
		if number <= liveLines {
			q.Caller.Log(tool.Log{
				Level: messageLevel(line), Logger: "script",
				Data: encode(LogMessage{number, line.Stream, line.Text}),
			})
		}
	}
}

// messageLevel returns the MCP log level of a line.
func messageLevel(line host.OutputLine) string {
	switch {
	case line.Stream == "stderr":
		return "notice"
	case line.Level == "warn":
		return "warning"
	case line.Level == "log":
		return "info"
	case line.Level != "":
		return line.Level
	default:
		return "info"
	}
}

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
