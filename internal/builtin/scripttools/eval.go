package scripttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/help"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/tools/toolset"
)

type evalIn struct {
	Code      string         `json:"code" jsonschema:"an expression, statements with a return, or with params a script that defines main(params)" min:"1" max:"1048576"`
	Language  string         `json:"language,omitempty" jsonschema:"of the code; default: the session's, otherwise lua" enum:"lua,javascript"`
	Params    toolset.Object `json:"params,omitempty" jsonschema:"if given, main(params) is called with it"`
	SessionID string         `json:"session_id,omitempty" jsonschema:"the session to run in, whose globals persist: its id, or a name of your choice, which creates it on first use; default: a fresh environment" max:"64"`
}

// Evaluated is the result of lua_eval.
type Evaluated struct {
	Result     toolset.JSON `json:"result" schema:"-"` // can be anything
	Silent     bool         `json:"silent,omitempty" jsonschema:"true if it returned no value; then result is null"`
	DurationMS int64        `json:"duration_ms"`
	Output     []OutputLine `json:"output" jsonschema:"what it printed and logged"`
	Warnings   []string     `json:"warnings,omitempty" jsonschema:"values that could not be saved"`
	Status     string       `json:"status,omitempty" jsonschema:"pending_approval if the code waits for approval: then result is null, and approval has its plan"`

	Approval *script.PendingInfo `json:"approval,omitempty" schema:"-"`
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
	call.Caller.Report(0, "Running script")
	q := script.Request{Source: in.Code, Language: in.Language, Params: []byte(in.Params), Main: in.Params != nil, Caller: call.Caller}
	if in.SessionID == "" { // turns of a session have their own names
		q = Attributed(call, q)
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
		call.Caller.Report(1, "Failed")
		return script.ToolFailure(done.Outcome, err), nil
	}
	call.Caller.Report(1, "Complete")
	return tool.Output(evalText(done), Evaluated{
		Result: done.Result, Silent: done.Silent, DurationMS: done.Duration.Milliseconds(), Output: outputLines(done.Output), Warnings: done.Warnings,
	})
}

// waiting is the result while the code waits for approval.
func waiting(p *script.PendingError, o script.Outcome) (tool.Result, error) {
	w := p.Info()
	return tool.Output(w.Text(), Evaluated{
		DurationMS: o.Duration.Milliseconds(), Output: outputLines(o.Output), Status: script.StatusWaiting, Approval: &w,
	})
}

// runRequest runs a request in a session, or without one if id is empty. The warnings of a
// turn that failed are added to the failure.
func (t scriptTools) runRequest(ctx context.Context, call tool.Call, id string, q script.Request) (session.Turn, error) {
	if id == "" {
		outcome, err := t.runner.Run(ctx, q)
		return session.Turn{Outcome: outcome}, err
	}
	done, err := t.sessions.Eval(ctx, call.Owner(), id, q)
	var failed *script.Error
	if errors.As(err, &failed) {
		failed.Troubleshooting = append(failed.Troubleshooting, done.Warnings...)
	}
	return done, err
}

// evalText returns the result and output as text.
func evalText(o session.Turn) string {
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

// Keys in a call's _meta with which the command line passes information about a
// script.
const (
	FileKey  = "luanette/file"  // the file it is in, for messages
	TypedKey = "luanette/typed" // its params as typed, by name
	RunKey   = "luanette/run"   // true: it is stored only to run it
)

// Attributed adds the script's file and the typed params to a request.
func Attributed(call tool.Call, q script.Request) script.Request {
	if file, ok := rawjson.GetText(call.Meta, FileKey); ok {
		q.Name = fileLabel(file)
	}
	if raw, ok := rawjson.Get(call.Meta, TypedKey); ok && json.Unmarshal(raw, &q.TypedParams) != nil {
		q.TypedParams = nil
	}
	return q
}

// fileLabel returns a file's name for positions in messages: shortened, and without
// characters that would end it there.
func fileLabel(file string) string {
	const longest = 64
	label := strings.Map(func(r rune) rune {
		if r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, file)
	if r := []rune(label); len(r) > longest {
		label = string(r[len(r)-longest:]) // the extension is at the end
	}
	return label
}

// CodeOptions limit one execute_code. Zero fields mean the default beside them.
type CodeOptions struct {
	Time      time.Duration // of which timeout_ms can ask for less; 5 s, and up to Longest if it asks for more
	Longest   time.Duration // without Time; 30 s
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
	if o.Longest <= 0 {
		o.Longest = 30 * time.Second
	}
	if o.Time <= 0 {
		o.Time = 5 * time.Second
	} else {
		o.Longest = o.Time
	}
	fill(&o.Memory, 64<<20)
	fill(&o.Calls, 100)
	fill(&o.ChatCalls, 10)
	return o
}

// Code makes the tool that runs code with access to all tools.
func Code(r *script.Runner, sessions *session.Sessions, o CodeOptions) []toolset.Tool {
	t := codeTools{scriptTools{runner: r, sessions: sessions}, o.orDefault()}
	return []toolset.Tool{toolset.AsScriptRunner(toolset.DefineResult[codeIn, Executed](texts, "execute_code", tool.Hints{}, t.execute))}
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

// Executed is the result of execute_code.
type Executed struct {
	Result     toolset.JSON `json:"result,omitempty" schema:"-"` // can be anything; missing if it failed
	Error      toolset.JSON `json:"error,omitempty" schema:"-"`
	Logs       []CodeLog    `json:"logs"`
	DurationMS int64        `json:"duration_ms"`
	Calls      int64        `json:"calls" jsonschema:"of tools"`
	Warnings   []string     `json:"warnings,omitempty"`
	Status     string       `json:"status,omitempty" jsonschema:"pending_approval if the code waits for approval: then approval has its plan"`

	Approval *script.PendingInfo `json:"approval,omitempty" schema:"-"`
}

// CodeLog is one line that code printed or logged.
type CodeLog struct {
	Level     string    `json:"level"`
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
}

func (t codeTools) execute(ctx context.Context, call tool.Call, in codeIn) (tool.Result, error) {
	call.Caller.Report(0, "Running code")
	done, err := t.scripts.runRequest(ctx, call, in.SessionID, t.request(call, in))
	if err != nil {
		call.Caller.Report(1, "Failed")
		return failedCode(done, err), nil
	}
	call.Caller.Report(1, "Complete")
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
		limits.Time = min(time.Duration(in.TimeoutMS)*time.Millisecond, t.options.Longest)
	}
	if call.Caller != nil && strings.HasPrefix(call.Caller.ID, "chat:") {
		limits.Tools = t.options.ChatCalls
	}
	return script.Request{Source: in.Code, Language: language, Caller: call.Caller, Limits: limits}
}

// codeResult is the result of code that succeeded. [LimitedSet] stores it if it is
// too large to be shown.
func codeResult(done session.Turn) (tool.Result, error) {
	said := executedOf(done)
	if said.Result = done.Result; len(said.Result) == 0 {
		said.Result = toolset.JSON("null")
	}
	return tool.Output(codeText(done), said)
}

// failedCode is the result of code that failed, with its output so far.
func failedCode(done session.Turn, err error) tool.Result {
	failed := script.ToolFailure(done.Outcome, err)
	meta, _ := rawjson.Get(failed.Raw, "_meta")
	cause, _ := rawjson.Get(meta, tool.ErrorKey)
	said := executedOf(done)
	said.Error = cause
	if pending, ok := errors.AsType[*script.PendingError](err); ok {
		info := pending.Info()
		said.Status, said.Approval = script.StatusWaiting, &info
	}
	structured, encodeErr := json.Marshal(said)
	if encodeErr != nil {
		return failed
	}
	return tool.Result{Raw: rawjson.Set(failed.Raw, "structuredContent", structured)}
}

func executedOf(done session.Turn) Executed {
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
func codeText(done session.Turn) string {
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

type helpIn struct {
	Topic string `json:"topic,omitempty" jsonschema:"a module such as midi, or a function such as midi.read; default: a list of all modules"`
}

// Help is the result of lua_help.
type Help struct {
	Topic  string   `json:"topic"`
	Page   string   `json:"page" jsonschema:"Markdown"`
	Topics []string `json:"topics" jsonschema:"documented modules"`
}

// Text returns the page.
func (h Help) Text() string { return h.Page }

func (t scriptTools) help(_ context.Context, _ tool.Call, in helpIn) (Help, error) {
	manual := help.NewManual(t.runner.Modules())
	page, err := manual.Lookup(in.Topic)
	return Help{strings.TrimSpace(in.Topic), page, manual.Topics()}, err
}
