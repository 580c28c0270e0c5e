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
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/lua"
)

// An error of a host function is a table in Lua: code, message and, if there are any,
// hint and details. It prints and concatenates as its message, and has the methods of
// strings, so that scripts that expect a text still work.

// errorMetaName is the registry key of the metatable of errors, and its __name.
const errorMetaName = "luanette.error"

// errorFunctions are the metamethods of errors. They belong to no library, because
// scripts do not see them.
var errorFunctions = []*lua.Function{
	lua.NewFunc(errorMetaName+".tostring", errorText),
	lua.NewFunc(errorMetaName+".concat", errorConcat),
	lua.NewFunc(errorMetaName+".index", errorMethod),
	errorMethodCall,
}

// errorMethodCall is bound to a function of the string library.
var errorMethodCall = lua.NewFunc(errorMetaName+".method", callErrorMethod)

// errorTable returns an error as scripts see it.
func errorTable(s *lua.State, f *fault.Error) *lua.Table {
	t := lua.NewTable(0, 4)
	t.SetString("code", lua.String(string(f.Code)))
	t.SetString("message", lua.String(f.Error()))
	if hint := fault.HintOf(f); hint != "" {
		t.SetString("hint", lua.String(hint))
	}
	if len(f.Details) > 0 {
		if details, err := lua.FromJSON(s, f.Details); err == nil {
			t.SetString("details", details)
		}
	}
	t.SetMetatable(errorMeta(s))
	return t
}

// errorMeta returns the metatable of errors in a state, with its own instances of the
// functions.
func errorMeta(s *lua.State) *lua.Table {
	if meta, ok := s.Registry().GetString(errorMetaName).AsTable(); ok {
		return meta
	}
	meta := lua.NewTable(0, 5)
	meta.SetString("__name", lua.String(errorMetaName))
	meta.SetString("__metatable", lua.String("error"))
	for i, name := range []string{"__tostring", "__concat", "__index"} {
		meta.SetString(name, errorFunctions[i].Bind().Value())
	}
	s.Registry().SetString(errorMetaName, meta.Value())
	return meta
}

// raisedFault returns the fault of an error table, or nil for other values.
func raisedFault(v lua.Value) *fault.Error {
	t, ok := v.AsTable()
	if !ok || t.Metatable() == nil {
		return nil
	}
	if name, _ := t.Metatable().GetString("__name").AsString(); name != errorMetaName {
		return nil
	}
	code, _ := t.GetString("code").AsString()
	hint, _ := t.GetString("hint").AsString()
	return fault.New(fault.Code(code), "%s", errorMessage(t)).WithHint("%s", hint)
}

// extendError returns a copy of an error table whose message ends with more text.
func extendError(v lua.Value, more string) lua.Value {
	t, _ := v.AsTable()
	extended := lua.NewTable(0, 4)
	for key, value := range t.All() {
		_ = extended.Set(key, value) // a key of a table is a valid key
	}
	extended.SetString("message", lua.String(errorMessage(t)+more))
	extended.SetMetatable(t.Metatable())
	return extended.Value()
}

func errorMessage(t *lua.Table) string {
	message, _ := t.GetString("message").AsString()
	return message
}

// messageAt returns the message of an error, or the text of any other argument.
func messageAt(c *lua.Call, i int) (string, error) {
	if f := raisedFault(c.Arg(i)); f != nil {
		return f.Error(), nil
	}
	return c.ToString(c.Arg(i))
}

func errorText(c *lua.Call) error {
	text, err := messageAt(c, 1)
	if err != nil {
		return err
	}
	return c.Return(lua.String(text))
}

func errorConcat(c *lua.Call) error {
	left, err := messageAt(c, 1)
	if err != nil {
		return err
	}
	right, err := messageAt(c, 2)
	if err != nil {
		return err
	}
	joined, err := c.NewString([]byte(left + right))
	if err != nil {
		return err
	}
	return c.Return(joined)
}

// errorMethod returns a method of strings, which applies to the message.
func errorMethod(c *lua.Call) error {
	methods := c.State().StringMetatable()
	if methods == nil {
		return c.Return(lua.Nil)
	}
	method, err := c.Index(methods.GetString("__index"), c.Arg(2))
	if err != nil || method.IsNil() {
		return errors.Join(err, c.Return(lua.Nil))
	}
	return c.Return(errorMethodCall.Bind(method).Value())
}

func callErrorMethod(c *lua.Call) error {
	args := append([]lua.Value{}, c.Args()...)
	if len(args) > 0 {
		if f := raisedFault(args[0]); f != nil {
			args[0] = lua.String(f.Error())
		}
	}
	results, err := c.Call(c.Upvalue(1), args...)
	if err != nil {
		return err
	}
	return c.Return(results...)
}

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
	nilCall  = lazyregexp.New(`attempt to call a nil value \((\w+) '([^']+)'\)`)
	nilIndex = lazyregexp.New(`attempt to index a nil value \((\w+) '([^']+)'\)`)

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
		m := nilIndex().FindStringSubmatch(message)
		if m[1] != "global" || !e.suggestSpace(r.toolNames(ctx), m[2]) && !e.suggestIndexed(documented(r.Modules()), m[2]) {
			e.suggestNamespace(ctx, r, m[2])
		}
	case strings.Contains(message, "attempt to index"):
		e.Kind = IndexError
	case strings.Contains(message, "attempt to"), strings.Contains(message, "bad argument"):
		e.Kind = TypeError
		e.suggestQuoted(r.toolNames(ctx))
	}
}

var tracebackLine = lazyregexp.New(`^\t(.+?):(?:(\d+):)? in (.+)$`)

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
