package script

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/cas"
)

// Kind classifies failures of scripts, for programs and for the choice of advice.
type Kind string

// The kinds.
const (
	SyntaxError  Kind = "SyntaxError"
	RuntimeError Kind = "RuntimeError"
	MissingMain  Kind = "MissingMain"
	NilCall      Kind = "NilCall"
	TypeError    Kind = "TypeError"
	IndexError   Kind = "IndexError"
	ToolError    Kind = "ToolError"
	ParamsError  Kind = "ParamsError"
	ResultError  Kind = "ResultError"
	Misdescribed Kind = "Misdescribed"
	Timeout      Kind = "Timeout"
	OutOfMemory  Kind = "OutOfMemory"
	LimitError   Kind = "LimitError"
	Cancelled    Kind = "Cancelled"
)

// Error is a script's failure, with what a person or a model needs to correct the
// script. It has the same text and JSON in every interface.
type Error struct {
	Kind            Kind     `json:"kind"`
	Script          string   `json:"script"` // the script's name, or the beginning of its hash
	Message         string   `json:"message"`
	Line            int      `json:"line,omitempty"`        // in the script; 0 when unknown
	Column          int      `json:"column,omitempty"`      // 0 if unknown, as always in Lua
	SourceLine      string   `json:"source_line,omitempty"` // the line itself
	Stack           []Frame  `json:"stack,omitempty"`
	Troubleshooting []string `json:"troubleshooting,omitempty"`
	Suggestions     []string `json:"suggestions,omitempty"` // "did you mean …"
	Problems        []string `json:"problems,omitempty"`    // each invalid param

	language string
	cause    error
}

// Frame is one level of the script's stack, innermost first. Frames of our own code are
// omitted.
type Frame struct {
	Source   string `json:"source"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Function string `json:"function,omitempty"`
}

func (f Frame) String() string {
	text := f.Source
	if f.Line > 0 {
		text += fmt.Sprintf(":%d", f.Line)
	}
	if f.Column > 0 {
		text += fmt.Sprintf(":%d", f.Column)
	}
	if f.Function != "" {
		text += ": in " + f.Function
	}
	return text
}

// titles are the headlines of kinds that have one of their own.
var titles = map[Kind]string{
	MissingMain:  "Missing main()",
	ToolError:    "Tool Call Failed",
	ResultError:  "Result Cannot Be Returned",
	Misdescribed: "Script Cannot Be Described",
	Timeout:      "Script Timed Out",
	OutOfMemory:  "Script Out Of Memory",
	LimitError:   "Script Limit Exceeded",
	Cancelled:    "Script Cancelled",
}

func (e *Error) title() string {
	if e.Kind == SyntaxError {
		return e.languageName() + " Syntax Error"
	}
	return cmp.Or(titles[e.Kind], e.languageName()+" Runtime Error")
}

// faultCodes are the codes of kinds that are not fault.Script.
var faultCodes = map[Kind]fault.Code{
	Timeout:     fault.Timeout,
	OutOfMemory: fault.Limit,
	LimitError:  fault.Limit,
	Cancelled:   fault.Cancelled,
	ParamsError: fault.InvalidParams,
}

// languageName returns the name of the script's language.
func (e *Error) languageName() string {
	if e.language == JavaScript {
		return "JavaScript"
	}
	return "Lua"
}

// Error returns the full error text.
func (e *Error) Error() string {
	if e.Kind == ParamsError { // the caller is at fault, not the script
		return e.Message
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s in %s\n\nError: %s\n", e.title(), e.Script, e.Message)
	if e.SourceLine != "" {
		fmt.Fprintf(&out, "%6d | %s\n", e.Line, e.SourceLine)
	}
	if len(e.Stack) > 0 {
		out.WriteString("Stack trace:\n")
		out.WriteString(e.StackText())
	}
	list(&out, "\nTroubleshooting:\n", e.Troubleshooting)
	list(&out, "\nSuggestions:\n", e.Suggestions)
	return strings.TrimRight(out.String(), "\n")
}

func list(out *strings.Builder, heading string, items []string) {
	if len(items) == 0 {
		return
	}
	out.WriteString(heading)
	for _, item := range items {
		fmt.Fprintf(out, "- %s\n", item)
	}
}

// StackText returns the stack, one line per frame.
func (e *Error) StackText() string {
	var out strings.Builder
	for _, frame := range e.Stack {
		fmt.Fprintf(&out, "  [%s] %s\n", e.languageName(), frame)
	}
	return out.String()
}

func (e *Error) Unwrap() error { return e.cause }

// Fault returns the failure as a fault, with itself as the details.
func (e *Error) Fault() *fault.Error {
	details, err := json.Marshal(e)
	if err != nil {
		details = nil
	}
	return &fault.Error{Code: cmp.Or(faultCodes[e.Kind], fault.Script), Err: e, Details: details}
}

// tellCalls makes a failure name the tools that the run waited for when its time was over
// or it was cancelled. A script gets the same from the tool, unless it was stopped first.
func tellCalls(ctx context.Context, failure *Error, names []string) {
	if len(names) == 0 || ctx.Err() == nil {
		return
	}
	var timeout *timeoutError
	switch cause := context.Cause(ctx); {
	case fault.CodeOf(cause) == fault.Limit: // the message says what was used up
		return
	case errors.As(cause, &timeout):
		failure.Kind, failure.Message = Timeout, timeout.Error()
	case fault.CodeOf(cause) == fault.Timeout:
		failure.Kind, failure.Message = Timeout, "the time of the caller was over, and the script was stopped"
	default:
		failure.Kind, failure.Message = Cancelled, "the run was cancelled"
	}
	more := ""
	if len(names) > mostCalls {
		names, more = names[:mostCalls], fmt.Sprintf(" and %d more", len(names)-mostCalls)
	}
	failure.Message += " while it waited for " + strings.Join(names, ", ") + more
	failure.Troubleshooting = []string{"That tool did not answer in time: ask it for less, call it on its own, or do without it"}
}

const mostCalls = 5 // that a message names

// timeoutError is the cause of a run's own deadline.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the script ran longer than %s and was stopped", e.after)
}

// explain converts the error of a run to an Error with advice.
func (r *Runner) explain(ctx context.Context, q Request, err error) *Error {
	var already *Error
	if errors.As(err, &already) {
		already.Script = q.label()
		already.language = q.language()
		already.locate(q)
		return already
	}
	e := &Error{Kind: RuntimeError, Script: q.label(), Message: err.Error(), cause: err, language: q.language()}
	if engine, err := r.engineFor(q); err == nil {
		engine.explain(ctx, r, q, e.cause, e)
	} else {
		e.explainFault(fault.From(e.cause), false)
	}
	e.locate(q)
	if !e.suggestAwait(ctx, r, q) {
		e.suggestField(ctx, r, q)
	}
	e.Troubleshooting = append(e.Troubleshooting, q.advice(e.Kind)...)
	return e
}

// advice returns general hints for failures of a kind.
func (q Request) advice(kind Kind) []string { return advice[q.language()][kind] }

// advice has general hints for failures, by language and kind.
var advice = map[string]map[Kind][]string{
	Lua: {
		SyntaxError: {
			"Check for a missing 'end', 'then', 'do', bracket or quote near the line",
			"Lua uses ~= for not-equal, .. to join strings, and -- for comments",
		},
		MissingMain: {
			"Define: function main(params) return { ok = true } end",
			"main must be a global function, not a local one",
		},
		NilCall: {
			"Check that the function or tool exists and is spelled as in search_tools",
			"Tools are called as mcp.<namespace>.<tool>{ ... }",
		},
		IndexError: {
			"Check that the value is a table before reading a field of it",
			"A missing key reads as nil; a JSON null is json.null",
		},
		TypeError: {
			"Check the types of the values on this line",
			"tostring() and tonumber() convert between strings and numbers",
		},
		ToolError: {
			"Check the arguments against the tool's schema with get_tool_definitions",
			"Use pcall to continue when a tool fails",
		},
		Timeout: {
			"Look for a loop that does not end",
			"Split long work into several runs, or run it as a job",
		},
		OutOfMemory: {
			"Look for a table or string that grows without end",
			"Handle large data in pieces",
		},
		Misdescribed: {
			"Define: function describe() return { name = \"my_tool\", description = \"what it does\", params = { n = { type = \"number\", required = true } } } end",
		},
		ResultError: {
			"Return plain data: strings, numbers, booleans and tables of them; bytes that are not text as base64.encode(bytes)",
			"A table is a list or has named keys, not both; json.null fills an empty place in a list",
		},
	},
	JavaScript: {
		SyntaxError: {
			"Check for a missing bracket, brace, quote or comma near the line",
			"Modules are not available: no import and no export",
		},
		MissingMain: {
			"Define: async function main(params) { return { ok: true } }",
			"main must be defined at the top level, and the top level must not return",
		},
		NilCall: {
			"Check that the function or tool exists and is spelled as in search_tools",
			"Tools are called as await mcp.<namespace>.<tool>({ ... })",
		},
		IndexError: {
			"Check that the value exists before reading a property of it, or write value?.property",
			"Tool calls return promises: await them before reading their results",
		},
		TypeError: {"Check the types of the values on this line"},
		ToolError: {
			"Check the arguments against the tool's schema with get_tool_definitions",
			"Use try and catch to continue when a tool fails",
		},
		Timeout: {
			"Look for a loop that does not end",
			"Calls that do not depend on each other go together: await Promise.all([ ... ])",
			"Split long work into several runs, or run it as a job",
		},
		OutOfMemory: {
			"Look for an array or string that grows without end",
			"Handle large data in pieces",
		},
		Misdescribed: {
			`Define: function describe() { return { name: "my_tool", description: "what it does", params: { n: { type: "number", required: true } } } }`,
		},
		ResultError: {"Return plain data without cycles, and only types that JSON supports"},
	},
}

// label names the script in headlines.
func (q Request) label() string {
	switch {
	case q.Name != "":
		return "script " + q.Name
	case q.Hash != (cas.Ref{}):
		return "script " + cas.Scheme + q.Hash.Short()
	default:
		return "script"
	}
}

// explainFault classifies an error of a host function or, if ofTool is set, of a tool.
func (e *Error) explainFault(f *fault.Error, ofTool bool) {
	switch {
	case f.Code == fault.Limit:
		e.Kind = LimitError
	case f.Code == fault.Timeout:
		e.Kind = Timeout
	case f.Code == fault.Cancelled:
		e.Kind = Cancelled
	case ofTool && f.Code != fault.Denied: // a refused call never reached the tool
		e.Kind = ToolError
	case strings.HasPrefix(e.Message, "bad argument"):
		e.Kind = TypeError
	}
	if hint := fault.HintOf(f); hint != "" {
		e.Suggestions = append(e.Suggestions, hint)
	}
}

// locate finds the line of the script that the message names, and quotes it.
func (e *Error) locate(q Request) {
	if e.Line == 0 {
		e.Line = lineOf(errors.New(e.Message), q.name())
	}
	if e.Line == 0 && len(e.Stack) > 0 {
		e.Line = e.Stack[0].Line
	}
	if line := lineAt(q.Source, e.Line); line != "" {
		e.SourceLine = shorten(line, 160)
	}
}

// lineAt returns a line of a source, "" if there is no such line.
func lineAt(source string, number int) string {
	lines := strings.Split(source, "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[number-1], " \t\r")
}

var atLine = lazyregexp.New(`^([^\s:]+):(\d+): `)

// lineOf returns the line of a message that begins with the script's position.
func lineOf(err error, script string) int {
	if m := atLine().FindStringSubmatch(err.Error()); m != nil && m[1] == script {
		line, _ := strconv.Atoi(m[2])
		return line
	}
	return 0
}

var (
	nilField       = lazyregexp.New(`nil value \(field '([^']+)'\)`)
	undefinedField = lazyregexp.New(`cannot read propert(?:y|ies) '([^']+)' of undefined|Cannot read properties of undefined \(reading '([^']+)'\)`)

	// toolPattern matches tools in scripts: mcp.ns.tool, mcp.ns["tool"] and
	// mcp.call("ns", "tool").
	toolPattern = lazyregexp.New(`\bmcp\.(\w+)(?:\.(\w+)|\[\s*["']([^"'\]]+)["']\s*\])|\bmcp\.call\(\s*["']([^"']+)["']\s*,\s*["']([^"']+)["']`)
)

// missingFields returns the names that may be the missing field, from the engine's
// message: Lua names the field, JavaScript names the property read from it.
func missingFields(message, line string) []string {
	if m := nilField().FindStringSubmatch(message); m != nil {
		return m[1:]
	}
	m := undefinedField().FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	before := regexp.MustCompile(`\.(\w+)\s*(?:\.|\[\s*["']?)` + regexp.QuoteMeta(m[1]+m[2]) + `\b`)
	var names []string
	for _, found := range before.FindAllStringSubmatch(line, 5) {
		names = append(names, found[1])
	}
	return names
}

// suggestField helps when a script read a field that a tool's result does not have. It
// looks at the tools that the script mentions, and only after a failure.
func (e *Error) suggestField(ctx context.Context, r *Runner, q Request) {
	if r.options.Fields == nil {
		return
	}
	names := missingFields(e.Message, lineAt(q.Source, e.Line))
	if len(names) == 0 {
		return
	}
	for _, ref := range r.toolsIn(ctx, q) {
		if fields := r.options.Fields(context.WithoutCancel(ctx), ref); len(fields) > 0 {
			e.compareFields(ref, fields, names, q.language() == JavaScript && !allAwaited(q.Source))
		}
	}
}

// allAwaited tells whether await stands before every tool that a source mentions.
func allAwaited(source string) bool {
	return !slices.ContainsFunc(toolPattern().FindAllStringIndex(source, -1), func(at []int) bool {
		return !strings.HasSuffix(strings.TrimRight(source[:at[0]], " \t\n("), "await")
	})
}

// compareFields suggests fields of a tool's results in place of the missing ones. promised
// means that the script may have read those of a promise.
func (e *Error) compareFields(ref tool.Ref, fields, names []string, promised bool) {
	for _, name := range names {
		if near := suggest.Names(name, fields, 3); len(near) > 0 && !slices.Contains(fields, name) {
			e.Suggestions = append(e.Suggestions, fmt.Sprintf("no field '%s' in results of %s; did you mean '%s'?", name, ref, strings.Join(near, "', '")))
			return
		}
	}
	for _, name := range names {
		if slices.Contains(fields, name) {
			advice := "check that it is present"
			if promised {
				advice = "check that the call is awaited, and that it is present"
			}
			e.hint(fmt.Sprintf("'%s' is not in every result of %s: %s", name, ref, advice))
			return
		}
	}
	shown := fields[:min(len(fields), 30)]
	e.Troubleshooting = append(e.Troubleshooting, fmt.Sprintf("fields in results of %s: %s", ref, strings.Join(shown, ", ")))
}

// toolsIn returns the tools that a script mentions, in JavaScript also by their plain
// names.
func (r *Runner) toolsIn(ctx context.Context, q Request) []tool.Ref {
	const limit = 20
	refs := toolsIn(q.Source, limit)
	if q.language() != JavaScript || r.options.JavaScript == nil {
		return refs
	}
	words, fields := wordsOf(q.Source)
	for _, path := range r.options.JavaScript.plainNames(ctx, r.options.Tools, words, fields) {
		space, name, ok := strings.Cut(path, ".")
		if !ok {
			space, name = "", path
		}
		if ref := (tool.Ref{Space: space, Name: name}); !slices.Contains(refs, ref) && len(refs) < limit {
			refs = append(refs, ref)
		}
	}
	return refs
}

// toolsIn returns the tools that a source mentions, without duplicates.
func toolsIn(source string, limit int) []tool.Ref {
	var refs []tool.Ref
	for _, m := range toolPattern().FindAllStringSubmatch(source, 10*limit) {
		ref := tool.Ref{Space: m[1] + m[4], Name: m[2] + m[3] + m[5]}
		if !slices.Contains(refs, ref) && len(refs) < limit {
			refs = append(refs, ref)
		}
	}
	return refs
}
