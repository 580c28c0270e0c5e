package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
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
	Script          string   `json:"script"` // the script's name, or cas:HASH
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

// title is the headline of each kind.
func (e *Error) title() string {
	switch e.Kind {
	case SyntaxError:
		return e.languageName() + " Syntax Error"
	case MissingMain:
		return "Missing main()"
	case ToolError:
		return "Tool Call Failed"
	case ResultError:
		return "Result Cannot Be Returned"
	case Misdescribed:
		return "Script Cannot Be Described"
	case Timeout:
		return "Script Timed Out"
	case OutOfMemory:
		return "Script Out Of Memory"
	case LimitError:
		return "Script Limit Exceeded"
	case Cancelled:
		return "Script Cancelled"
	default:
		return e.languageName() + " Runtime Error"
	}
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
	code := fault.Script
	switch e.Kind {
	case Timeout:
		code = fault.Timeout
	case OutOfMemory, LimitError:
		code = fault.Limit
	case Cancelled:
		code = fault.Cancelled
	case ParamsError:
		code = fault.InvalidParams
	}
	details, err := json.Marshal(e)
	if err != nil {
		details = nil
	}
	return &fault.Error{Code: code, Err: e, Details: details}
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
