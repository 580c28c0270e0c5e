package script

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/cas"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/lua"
)

// explain turns whatever ended a run into a failure with advice.
func (r *Runner) explain(ctx context.Context, q Request, err error) *Error {
	var already *Error
	if errors.As(err, &already) {
		already.Script = q.label()
		already.locate(q)
		return already
	}
	e := &Error{Kind: RuntimeError, Script: q.label(), Message: err.Error(), cause: err}
	var budget *lua.BudgetError
	var raised *lua.Error
	switch {
	case errors.As(err, &budget):
		e.explainBudget(budget)
	case errors.As(err, &raised):
		e.Message = preludePosition.ReplaceAllString(messageOf(raised), "")
		e.Stack = frames(raised.Traceback, q.name())
		e.locate(q)
		e.explainRaised(ctx, r, raised)
	}
	e.locate(q)
	e.Troubleshooting = append(e.Troubleshooting, adviceFor(e.Kind)...)
	return e
}

// label is how the script is called in headlines.
func (q Request) label() string {
	switch {
	case q.Hash != (cas.Ref{}):
		return "script " + cas.Scheme + q.Hash.String()
	case q.Name == "":
		return "script"
	default:
		return "script " + q.Name
	}
}

// explainBudget words the limits a script cannot catch.
func (e *Error) explainBudget(b *lua.BudgetError) {
	e.Stack = frames(b.Traceback, "")
	var timeout *timeoutError
	switch {
	case b.Limit == lua.LimitMemory:
		e.Kind = OutOfMemory
		e.Message = fmt.Sprintf("the script needed more than %d MiB of memory and was stopped", b.Allowed>>20)
	case errors.As(b.Cause, &timeout):
		e.Kind, e.Message = Timeout, timeout.Error()
	case b.Limit == lua.LimitContext:
		e.Kind, e.Message = Cancelled, "the run was cancelled"
	case b.Limit == lua.LimitDeadline:
		e.Kind, e.Message = Timeout, "the script ran past its deadline and was stopped"
	default:
		e.Kind, e.Message = LimitError, b.Error()
	}
}

// messageOf is what the script raised; a table is shown with its contents.
func messageOf(raised *lua.Error) string {
	if table, ok := raised.Value.AsTable(); ok && table.Metatable() == nil {
		if raw, err := lua.ToJSON(raised.Value); err == nil {
			return string(raw)
		}
	}
	return raised.Error()
}

var (
	nilCall  = regexp.MustCompile(`attempt to call a nil value \((\w+) '([^']+)'\)`)
	nilIndex = regexp.MustCompile(`attempt to index a nil value \((\w+) '([^']+)'\)`)
	atLine   = regexp.MustCompile(`^([^\s:]+):(\d+): `)

	// preludePosition is where in our own preludes something was raised, which
	// tells a script's writer nothing.
	preludePosition = regexp.MustCompile(`^` + regexp.QuoteMeta(preludeName) + `\w+\]:\d+: `)
)

// explainRaised sorts an error by its message and cause, as somebody who knows
// Lua would.
func (e *Error) explainRaised(ctx context.Context, r *Runner, raised *lua.Error) {
	var inner *fault.Error
	if errors.As(raised.Cause, &inner) {
		var tool toolFault
		e.explainFault(inner, errors.As(raised.Cause, &tool))
		return
	}
	switch message := e.Message; {
	case nilCall.MatchString(message):
		e.Kind = NilCall
		m := nilCall.FindStringSubmatch(message)
		e.suggestFunction(ctx, r, m[1] == "global", m[2])
	case nilIndex.MatchString(message):
		e.Kind = IndexError
		e.suggestNamespace(ctx, r, nilIndex.FindStringSubmatch(message)[2])
	case strings.Contains(message, "attempt to index"):
		e.Kind = IndexError
	case strings.Contains(message, "attempt to"), strings.Contains(message, "bad argument"):
		e.Kind = TypeError
	}
}

// explainFault sorts what a host function or, when ofTool is set, a tool raised.
func (e *Error) explainFault(f *fault.Error, ofTool bool) {
	switch {
	case f.Code == fault.Limit:
		e.Kind = LimitError
	case f.Code == fault.Timeout:
		e.Kind = Timeout
	case f.Code == fault.Cancelled:
		e.Kind = Cancelled
	case ofTool && f.Code != fault.Denied: // what was refused was never called
		e.Kind = ToolError
	case strings.HasPrefix(e.Message, "bad argument"):
		e.Kind = TypeError
	}
	if hint := fault.HintOf(f); hint != "" {
		e.Suggestions = append(e.Suggestions, hint)
	}
}

// locate finds the line of the script the message speaks of, and quotes it.
func (e *Error) locate(q Request) {
	if e.Line == 0 {
		e.Line = lineOf(errors.New(e.Message), q.name())
	}
	if e.Line == 0 && len(e.Stack) > 0 {
		e.Line = e.Stack[0].Line
	}
	lines := strings.Split(q.Source, "\n")
	if e.Line >= 1 && e.Line <= len(lines) {
		e.SourceLine = shorten(strings.TrimRight(lines[e.Line-1], " \t\r"), 160)
	}
}

// lineOf reads the line of a message that begins with the script's position.
func lineOf(err error, script string) int {
	if m := atLine.FindStringSubmatch(err.Error()); m != nil && m[1] == script {
		line, _ := strconv.Atoi(m[2])
		return line
	}
	return 0
}

var tracebackLine = regexp.MustCompile(`^\t(.+?):(?:(\d+):)? in (.+)$`)

// frames reads a traceback, leaving out host functions and our preludes.
func frames(traceback, script string) []Frame {
	var stack []Frame
	for line := range strings.SplitSeq(traceback, "\n") {
		m := tracebackLine.FindStringSubmatch(line)
		if m == nil || m[1] == "[C]" || strings.HasPrefix(m[1], preludeName) {
			continue
		}
		if script != "" && m[1] != script && !strings.HasPrefix(m[1], "[string") {
			continue
		}
		number, _ := strconv.Atoi(m[2])
		stack = append(stack, Frame{Source: m[1], Line: number, Function: m[3]})
	}
	return stack
}

// adviceFor is what usually helps.
func adviceFor(kind Kind) []string {
	switch kind {
	case SyntaxError:
		return []string{"Check for a missing 'end', 'then', 'do', bracket or quote near the line", "Lua uses ~= for not-equal, .. to join strings, and -- for comments"}
	case MissingMain:
		return []string{"Define: function main(params) return { ok = true } end", "main must be a global function, not a local one"}
	case NilCall:
		return []string{"Check that the function or tool exists and is spelled as in search_tools", "Tools are called as mcp.<namespace>.<tool>{ ... }"}
	case IndexError:
		return []string{"Check that the value is a table before reading a field of it", "A missing key reads as nil; a JSON null is json.null"}
	case TypeError:
		return []string{"Check the types of the values on this line", "tostring() and tonumber() convert between strings and numbers"}
	case ToolError:
		return []string{"Check the arguments against the tool's schema with get_tool_definitions", "Use pcall to go on when a tool fails"}
	case Timeout:
		return []string{"Look for a loop that does not end", "Split long work into several runs, or run it as a job"}
	case OutOfMemory:
		return []string{"Look for a table or string that grows without end", "Handle large data in pieces"}
	case Misdescribed:
		return []string{"Define: function describe() return { name = \"my_tool\", description = \"what it does\", params = { n = { type = \"number\", required = true } } } end"}
	case ResultError:
		return []string{"Return plain data: strings, numbers, booleans and tables of them", "A table is a list or has named keys, not both; json.null fills an empty place in a list"}
	default:
		return nil
	}
}
