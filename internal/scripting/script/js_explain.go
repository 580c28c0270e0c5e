package script

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/js"
)

// jsFailure is the error that ended a script, with the error of the host function that
// caused it, if any.
type jsFailure struct{ err, cause error }

func (f *jsFailure) Error() string { return f.err.Error() }

func (f *jsFailure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.err}
	}
	return []error{f.err, f.cause}
}

// explain classifies an error of JavaScript.
func (e *JavaScriptEngine) explain(ctx context.Context, r *Runner, q Request, err error, to *Error) {
	var thrown *js.Error
	var stopped *js.Stopped
	if errors.As(err, &thrown) {
		to.Stack = jsFrames(thrown.Stack)
		to.Message = jsMessage(thrown)
	}
	if errors.As(err, &stopped) {
		to.Stack = jsFrames(stopped.Stack)
	}
	to.place(q)
	var memory *js.OutOfMemory
	var result *js.Unconvertible
	switch {
	case errors.As(err, &memory):
		to.Kind, to.Message = OutOfMemory, outOfMemoryText(q.Limits.orDefault(r.options.Limits).Memory)
	case stopped != nil:
		to.explainStop(stopped, err)
	case errors.As(err, &result):
		to.Kind, to.Message = ResultError, "the result cannot be returned: "+to.Message
	case thrown == nil:
		to.explainFault(fault.From(err), false)
	case thrown.Static:
		to.Kind = SyntaxError
		to.hint(thrown.Hint)
	default:
		to.explainThrown(ctx, r, thrown, err)
	}
}

// jsMessage returns the text of what was thrown. The name of a plain Error is omitted.
func jsMessage(thrown *js.Error) string {
	if thrown.Name == "" || thrown.Name == "Error" {
		return thrown.Message
	}
	return thrown.Name + ": " + thrown.Message
}

// jsFrames converts a stack, without frames of code made by eval.
func jsFrames(stack []js.Frame) []Frame {
	var frames []Frame
	for _, f := range stack {
		if !strings.HasPrefix(f.File, "<") {
			frames = append(frames, Frame{Source: f.File, Line: f.Line, Column: f.Column, Function: f.Function})
		}
	}
	return frames
}

// place takes the position from the innermost frame in this source: functions of a
// session may come from other sources.
func (e *Error) place(q Request) {
	if i := slices.IndexFunc(e.Stack, func(f Frame) bool { return f.Source == q.name() }); i >= 0 {
		e.Line, e.Column = e.Stack[i].Line, e.Stack[i].Column
	}
	e.locate(q)
}

// explainStop describes errors that a script cannot catch.
func (e *Error) explainStop(stopped *js.Stopped, err error) {
	var timeout *timeoutError
	var inner *fault.Error
	switch {
	case errors.As(stopped.Cause, &timeout):
		e.Kind, e.Message = Timeout, timeout.Error()
	case fault.CodeOf(err) == fault.Limit:
		e.Kind, e.Message = LimitError, strings.TrimSuffix(firstLine(err), ": "+stopped.Error())
	case fault.CodeOf(err) == fault.Timeout:
		e.Kind, e.Message = Timeout, strings.TrimSuffix(firstLine(err), ": "+stopped.Error())
	case errors.As(stopped.Cause, &inner): // an effect ended the run
		e.Message = inner.Error()
		e.explainFault(inner, false)
	default:
		e.Kind, e.Message = Cancelled, "the run was cancelled"
	}
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func outOfMemoryText(limit int64) string {
	return fmt.Sprintf("the script needed more than %d MiB of memory and was stopped", limit>>20)
}

func (e *Error) hint(text string) {
	if text != "" {
		e.Suggestions = append(e.Suggestions, text)
	}
}

var (
	notDefined = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ReferenceError: (.+) is not defined$`) })
	noProperty = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^TypeError: cannot (?:read|set) property`) })
)

// explainThrown classifies an exception by its cause and message.
func (e *Error) explainThrown(ctx context.Context, r *Runner, thrown *js.Error, err error) {
	if thrown.Func != "" {
		cause, ofTool := fault.New(fault.Code(thrown.Code), "%s", thrown.Message).WithHint("%s", thrown.Hint), false
		if known := (*jsFailure)(nil); errors.As(err, &known) && known.cause != nil {
			var tool toolFault
			ofTool = errors.As(known.cause, &tool)
			cause = fault.From(known.cause)
		}
		if ofTool && cause.Code == fault.ToolNotFound {
			cause = fault.New(cause.Code, "%s", cause.Error()) // its hint is not written as in scripts
			e.suggestTool(ctx, r, thrown.Func[strings.LastIndex(thrown.Func, ".")+1:])
		}
		e.explainFault(cause, ofTool)
		e.suggestNamesake(ctx, r, thrown.Func)
		return
	}
	switch message := e.Message; {
	case notDefined().MatchString(message):
		name := strings.Trim(notDefined().FindStringSubmatch(message)[1], "'")
		if strings.Contains(e.SourceLine, name+"(") {
			e.Kind = NilCall
		}
		if e.hint(thrown.Hint); thrown.Hint == "" {
			e.suggestName(ctx, r, name)
		}
	case message == "TypeError: not a function":
		e.Kind = NilCall
		if called := calledAt(e.SourceLine, e.Column); called != "" {
			e.Message = "TypeError: " + called + " is not a function"
			e.suggestMember(r, called)
		}
	case noProperty().MatchString(message):
		e.Kind = IndexError
	case thrown.Name == "TypeError":
		e.Kind = TypeError
	}
}

// suggestName helps with an undefined global: it suggests similar names, or the tools
// that may be meant.
func (e *Error) suggestName(ctx context.Context, r *Runner, name string) {
	tools := r.toolNames(ctx)
	if e.suggestQuoted(tools.spaces()) {
		return
	}
	var meant, all []string
	for _, one := range tools {
		all = append(all, one.name)
		if identifier(one.name) == name {
			meant = append(meant, one.path())
		}
	}
	if len(meant) > 1 {
		e.hint("Several tools have that name; write " + strings.Join(meant, " or "))
		return
	}
	if absent := absentInJavaScript[name]; absent != "" {
		e.hint(absent)
		return
	}
	known := documentedInJavaScript(r.Modules())
	if e.suggestModuleOf(name, known) {
		return
	}
	for module := range known {
		if module != "" {
			all = append(all, module)
		}
	}
	e.didYouMean(name, append(all, known[""]...))
}

// suggestNamesake names tools that are hidden by a function of ours with the same name.
func (e *Error) suggestNamesake(ctx context.Context, r *Runner, function string) {
	for _, one := range r.toolNames(ctx) {
		if identifier(one.name) == function {
			e.hint("The tool of that name is " + one.path())
		}
	}
}

// suggestMember helps with an undefined function of a module.
func (e *Error) suggestMember(r *Runner, called string) {
	module, name, ok := strings.Cut(called, ".")
	if !ok {
		return
	}
	if known := documentedInJavaScript(r.Modules())[module]; known != nil {
		e.suggestMemberOf(module, name, known)
	}
}

// absentInJavaScript maps names of modules that only Lua has to advice.
var absentInJavaScript = map[string]string{
	"json":     "Use JSON.stringify and JSON.parse",
	"parallel": "Calls run in parallel with await Promise.all([ ... ])",
	"spawn":    "Calls run in parallel with await Promise.all([ ... ])",
}

// documentedInJavaScript is documented for the modules that JavaScript has.
func documentedInJavaScript(modules []host.Module) map[string][]string {
	return documented(slices.DeleteFunc(slices.Clone(modules), func(m host.Module) bool { return m.LuaOnly }))
}

var (
	pathBefore = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w$.\]\['"?]*$`) })
	wordAfter  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w$]*`) })
)

// calledAt returns the expression that ends at a column of a line: "midi.raed".
func calledAt(line string, column int) string {
	if column < 1 || column > len(line) {
		return ""
	}
	before, after := line[:column-1], line[column-1:]
	return strings.TrimLeft(pathBefore().FindString(before), ".?])'\"") + wordAfter().FindString(after)
}

// advice returns general hints for failures in JavaScript.
func (e *JavaScriptEngine) advice(kind Kind) []string {
	switch kind {
	case SyntaxError:
		return []string{"Check for a missing bracket, brace, quote or comma near the line", "Modules are not available: no import and no export"}
	case MissingMain:
		return []string{"Define: async function main(params) { return { ok: true } }", "main must be defined at the top level, and the top level must not return"}
	case NilCall:
		return []string{"Check that the function or tool exists and is spelled as in search_tools", "Tools are called as await mcp.<namespace>.<tool>({ ... })"}
	case IndexError:
		return []string{"Check that the value exists before reading a property of it, or write value?.property", "Tool calls return promises: await them before reading their results"}
	case TypeError:
		return []string{"Check the types of the values on this line"}
	case ToolError:
		return []string{"Check the arguments against the tool's schema with get_tool_definitions", "Use try and catch to continue when a tool fails"}
	case Timeout:
		return []string{"Look for a loop that does not end", "Calls that do not depend on each other go together: await Promise.all([ ... ])", "Split long work into several runs, or run it as a job"}
	case OutOfMemory:
		return []string{"Look for an array or string that grows without end", "Handle large data in pieces"}
	case Misdescribed:
		return []string{`Define: function describe() { return { name: "my_tool", description: "what it does", params: { n: { type: "number", required: true } } } }`}
	case ResultError:
		return []string{"Return plain data without cycles, and only types that JSON supports"}
	default:
		return nil
	}
}
