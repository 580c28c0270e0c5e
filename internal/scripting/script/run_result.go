package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
