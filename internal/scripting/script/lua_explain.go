package script

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/lua"
)

// explain classifies an error of Lua.
func (e *luaEngine) explain(ctx context.Context, r *Runner, q Request, err error, to *Error) {
	var budget *lua.BudgetError
	var raised *lua.Error
	switch {
	case errors.As(err, &budget):
		to.explainBudget(budget)
	case errors.As(err, &raised):
		to.Message = preludePosition().ReplaceAllString(messageOf(raised), "")
		to.Stack = frames(raised.Traceback, q.name())
		to.locate(q)
		to.explainRaised(ctx, r, raised)
	default: // it did not start
		to.explainFault(fault.From(err), false)
	}
}

// explainBudget describes the limits that a script cannot catch.
func (e *Error) explainBudget(b *lua.BudgetError) {
	e.Stack = frames(b.Traceback, "")
	var timeout *timeoutError
	switch {
	case b.Limit == lua.LimitMemory:
		e.Kind = OutOfMemory
		e.Message = fmt.Sprintf("the script needed more than %d MiB of memory and was stopped", b.Allowed>>20)
	case errors.As(b.Cause, &timeout):
		e.Kind, e.Message = Timeout, timeout.Error()
	case b.Limit == lua.LimitReserve, b.Limit == lua.LimitContext && fault.CodeOf(b.Cause) == fault.Limit:
		e.Message = fault.From(b.Cause).Error()
		e.explainFault(fault.From(b.Cause), false)
	case b.Limit == lua.LimitContext:
		e.Kind, e.Message = Cancelled, "the run was cancelled"
	case b.Limit == lua.LimitDeadline:
		e.Kind, e.Message = Timeout, "the script ran past its deadline and was stopped"
	default:
		e.Kind, e.Message = LimitError, b.Error()
	}
}

// messageOf returns what the script raised; a table is shown with its contents.
func messageOf(raised *lua.Error) string {
	if f := raisedFault(raised.Value); f != nil {
		return f.Error()
	}
	if table, ok := raised.Value.AsTable(); ok && table.Metatable() == nil {
		if raw, err := lua.ToJSON(raised.Value); err == nil {
			return string(raw)
		}
	}
	return raised.Error()
}

var (
	nilCall  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`attempt to call a nil value \((\w+) '([^']+)'\)`) })
	nilIndex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`attempt to index a nil value \((\w+) '([^']+)'\)`) })

	// preludePosition matches a position in our own preludes, which does not help a
	// script's author.
	preludePosition = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + regexp.QuoteMeta(preludeName) + `\w+\]:\d+: `) })
)

// explainRaised classifies an error by its message and cause.
func (e *Error) explainRaised(ctx context.Context, r *Runner, raised *lua.Error) {
	var inner *fault.Error
	if errors.As(raised.Cause, &inner) {
		var tool toolFault
		e.explainFault(inner, errors.As(raised.Cause, &tool))
		return
	}
	if caught := raisedFault(raised.Value); caught != nil { // and raised again by the script
		e.explainFault(caught, false)
		return
	}
	switch message := e.Message; {
	case nilCall().MatchString(message):
		e.Kind = NilCall
		m := nilCall().FindStringSubmatch(message)
		e.suggestFunction(ctx, r, m[1] == "global", m[2])
	case nilIndex().MatchString(message):
		e.Kind = IndexError
		e.suggestNamespace(ctx, r, nilIndex().FindStringSubmatch(message)[2])
	case strings.Contains(message, "attempt to index"):
		e.Kind = IndexError
	case strings.Contains(message, "attempt to"), strings.Contains(message, "bad argument"):
		e.Kind = TypeError
	}
}

var tracebackLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\t(.+?):(?:(\d+):)? in (.+)$`) })

// tailCalls stands in tracebacks for the callers that a tail call has replaced.
const tailCalls = "(...tail calls...)"

// frames parses a traceback without host functions and our preludes.
func frames(traceback, script string) []Frame {
	var stack []Frame
	shown := false // the frame before is in stack
	for line := range strings.SplitSeq(traceback, "\n") {
		if shown && strings.TrimSpace(line) == tailCalls {
			stack = append(stack, Frame{Source: tailCalls})
			continue
		}
		m := tracebackLine().FindStringSubmatch(line)
		shown = false
		if m == nil || m[1] == "[C]" || strings.HasPrefix(m[1], preludeName) {
			continue
		}
		if script != "" && m[1] != script && !strings.HasPrefix(m[1], "[string") {
			continue
		}
		number, _ := strconv.Atoi(m[2])
		stack = append(stack, Frame{Source: m[1], Line: number, Function: m[3]})
		shown = true
	}
	return stack
}

func (e *luaEngine) advice(kind Kind) []string { return luaAdvice(kind) }

// luaAdvice returns general hints for failures in Lua.
func luaAdvice(kind Kind) []string {
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
		return []string{"Check the arguments against the tool's schema with get_tool_definitions", "Use pcall to continue when a tool fails"}
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
