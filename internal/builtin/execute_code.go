package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// CodeOptions bound one execute_code. Zero fields mean the default beside them.
type CodeOptions struct {
	Time      time.Duration // 5 s
	LongestMS int64         // what timeout_ms may ask for; 30,000
	Memory    int64         // 64 MiB
	Calls     int64         // tools it may call; 100
	ChatCalls int64         // the same when a chat's model runs it; 10
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

// Code makes the tool that runs code over all tools.
func Code(r ScriptRunner, sessions SessionStore, o CodeOptions) []Tool {
	t := codeTools{scriptTools{runner: r, sessions: sessions}, o.orDefault()}
	return []Tool{runs[codeIn, Executed]("execute_code", tool.Hints{}, t.execute)}
}

type codeTools struct {
	scripts scriptTools
	options CodeOptions
}

type codeIn struct {
	Code      string `json:"code" jsonschema:"the result is what it returns, or its last expression" min:"1" max:"100000"`
	Language  string `json:"language,omitempty" jsonschema:"javascript unless told" enum:"javascript,lua"`
	SessionID string `json:"session_id,omitempty" jsonschema:"whose variables persist" max:"64"`
	TimeoutMS int64  `json:"timeout_ms,omitempty" jsonschema:"5000 unless told" min:"1" max:"600000"`
}

// Executed is what execute_code answers, beside result: what the code returned,
// which can be anything and so has no place in a schema.
type Executed struct {
	Logs       []CodeLog `json:"logs"`
	DurationMS int64     `json:"duration_ms"`
	Calls      int64     `json:"calls" jsonschema:"of tools"`
	Warnings   []string  `json:"warnings,omitempty"`
}

// CodeLog is one line that code printed or logged.
type CodeLog struct {
	Level     string    `json:"level"`
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
}

func (t codeTools) execute(ctx context.Context, call tool.Call, in codeIn) (tool.Result, error) {
	tell(call.Caller, 0, "Running code")
	done, err := t.scripts.take(ctx, call, in.SessionID, t.request(call, in))
	if err != nil {
		tell(call.Caller, 1, "Failed")
		return failedCode(done, err), nil
	}
	tell(call.Caller, 1, "Complete")
	return codeResult(done)
}

// request is the run that a call asks for.
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

// codeResult is the answer of code that came to its end. Whatever execute_code
// gives to a model as its result passes here, and then [Bounded], which keeps
// what is too big to be shown.
func codeResult(done script.Turn) (tool.Result, error) {
	said := executedOf(done)
	return tool.Output(codeText(done), struct {
		Result JSON `json:"result"`
		Executed
	}{done.Result, said})
}

// failedCode is the answer of code that failed: told as scripts fail, and with what
// it had said until then.
func failedCode(done script.Turn, err error) tool.Result {
	failed := script.ToolFailure(done.Outcome, err)
	meta, _ := rawjson.Get(failed.Raw, "_meta")
	cause, _ := rawjson.Get(meta, tool.ErrorKey)
	structured, encodeErr := json.Marshal(struct {
		Error JSON `json:"error,omitempty"`
		Executed
	}{cause, executedOf(done)})
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

// codeText is the result and what was said on the way, as a model reads it.
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
