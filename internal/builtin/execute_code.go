package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// CodeOptions limit one execute_code. Zero fields mean the default beside them.
type CodeOptions struct {
	Time      time.Duration // 5 s
	LongestMS int64         // largest timeout_ms; 30,000
	Memory    int64         // 64 MiB
	Calls     int64         // tool calls; 100
	ChatCalls int64         // tool calls in a chat; 10
}

func (o CodeOptions) orDefault() CodeOptions {
	fill := func(v *int64, otherwise int64) {
		if *v <= 0 {
			*v = otherwise
		}
	}
	if o.Time <= 0 {
		o.Time = 5 * time.Second
	}
	fill(&o.LongestMS, 30_000)
	fill(&o.Memory, 64<<20)
	fill(&o.Calls, 100)
	fill(&o.ChatCalls, 10)
	return o
}

// Code makes the tool that runs code with access to all tools.
func Code(r ScriptRunner, sessions SessionStore, o CodeOptions) []Tool {
	t := codeTools{scriptTools{runner: r, sessions: sessions}, o.orDefault()}
	return []Tool{runs[codeIn, Executed]("execute_code", tool.Hints{}, t.execute)}
}

type codeTools struct {
	scripts scriptTools
	options CodeOptions
}

type codeIn struct {
	Code      string `json:"code" jsonschema:"the result is what it returns, or its last expression" max:"100000"`
	Language  string `json:"language,omitempty" jsonschema:"default javascript" enum:"javascript,lua"`
	SessionID string `json:"session_id,omitempty" jsonschema:"its variables persist" max:"64"`
	TimeoutMS int64  `json:"timeout_ms,omitempty" jsonschema:"default 5000" min:"1" max:"600000"`
}

// Executed is the result of execute_code, without the value that the code returned, which can be
// anything and so is not in the schema.
type Executed struct {
	Logs       []CodeLog `json:"logs"`
	DurationMS int64     `json:"duration_ms"`
	Calls      int64     `json:"calls" jsonschema:"of tools"`
	Warnings   []string  `json:"warnings,omitempty"`
	Status     string    `json:"status,omitempty" jsonschema:"pending_approval if the code waits for approval: then approval has its plan"`
}

// CodeLog is one line that code printed or logged.
type CodeLog struct {
	Level     string    `json:"level"`
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
}

func (t codeTools) execute(ctx context.Context, call tool.Call, in codeIn) (tool.Result, error) {
	reportProgress(call.Caller, 0, "Running code")
	done, err := t.scripts.runRequest(ctx, call, in.SessionID, t.request(call, in))
	if err != nil {
		reportProgress(call.Caller, 1, "Failed")
		return failedCode(done, err), nil
	}
	reportProgress(call.Caller, 1, "Complete")
	return codeResult(done)
}

// request returns the run that a call asks for.
func (t codeTools) request(call tool.Call, in codeIn) script.Request {
	language := in.Language
	if language == "" && in.SessionID == "" {
		language = script.JavaScript
	}
	limits := script.Limits{Time: t.options.Time, Memory: t.options.Memory, Tools: t.options.Calls}
	if in.TimeoutMS > 0 {
		limits.Time = time.Duration(min(in.TimeoutMS, t.options.LongestMS)) * time.Millisecond
	}
	if call.Caller != nil && strings.HasPrefix(call.Caller.ID, "chat:") {
		limits.Tools = t.options.ChatCalls
	}
	return script.Request{Source: in.Code, Language: language, Caller: call.Caller, Limits: limits}
}

// codeResult is the result of code that succeeded. [LimitedSet] stores it if it is
// too large to be shown.
func codeResult(done script.Turn) (tool.Result, error) {
	said := executedOf(done)
	return tool.Output(codeText(done), struct {
		Result JSON `json:"result"`
		Executed
	}{done.Result, said})
}

// failedCode is the result of code that failed, with its output so far.
func failedCode(done script.Turn, err error) tool.Result {
	failed := script.ToolFailure(done.Outcome, err)
	meta, _ := rawjson.Get(failed.Raw, "_meta")
	cause, _ := rawjson.Get(meta, tool.ErrorKey)
	said, approval := executedOf(done), (*script.PendingInfo)(nil)
	if pending, ok := errors.AsType[*script.PendingError](err); ok {
		info := pending.Info()
		said.Status, approval = script.StatusWaiting, &info
	}
	structured, encodeErr := json.Marshal(struct {
		Error JSON `json:"error,omitempty"`
		Executed
		Approval *script.PendingInfo `json:"approval,omitempty"`
	}{cause, said, approval})
	if encodeErr != nil {
		return failed
	}
	return tool.Result{Raw: rawjson.Set(failed.Raw, "structuredContent", structured)}
}

func executedOf(done script.Turn) Executed {
	return Executed{Logs: codeLogs(done.Output), DurationMS: done.Duration.Milliseconds(), Calls: done.Tools, Warnings: done.Warnings}
}

func codeLogs(lines []host.OutputLine) []CodeLog {
	logs := make([]CodeLog, len(lines))
	for i, line := range lines {
		logs[i] = CodeLog{line.Level, line.Text, line.Time}
		switch {
		case line.Level != "":
		case line.Stream == "stderr":
			logs[i].Level = "error"
		default:
			logs[i].Level = "log"
		}
	}
	return logs
}

// codeText returns the result and output as text for a model.
func codeText(done script.Turn) string {
	var out strings.Builder
	out.WriteString(script.Pretty(done.Result))
	for i, line := range codeLogs(done.Output) {
		if i == 0 {
			out.WriteString("\n\nLogs:")
		}
		fmt.Fprintf(&out, "\n  %s: %s", line.Level, line.Message)
	}
	for _, warning := range done.Warnings {
		fmt.Fprintf(&out, "\nWarning: %s", warning)
	}
	return out.String()
}
