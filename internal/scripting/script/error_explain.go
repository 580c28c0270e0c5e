package script

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
)

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
	e.suggestField(ctx, r, q)
	e.Troubleshooting = append(e.Troubleshooting, r.advice(q, e.Kind)...)
	return e
}

// advice returns general hints for failures of a kind, for the request's language.
func (r *Runner) advice(q Request, kind Kind) []string {
	engine, err := r.engineFor(q)
	if err != nil {
		return nil
	}
	return engine.advice(kind)
}

// label names the script in headlines.
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

var atLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^\s:]+):(\d+): `) })

// lineOf returns the line of a message that begins with the script's position.
func lineOf(err error, script string) int {
	if m := atLine().FindStringSubmatch(err.Error()); m != nil && m[1] == script {
		line, _ := strconv.Atoi(m[2])
		return line
	}
	return 0
}
