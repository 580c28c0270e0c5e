package script

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Kind sorts failures of scripts for programs and for the advice that fits.
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

// Error is a script's failure, told so that a person or a model can mend the
// script. Its text is the same through every door; its JSON is the same as data.
type Error struct {
	Kind            Kind     `json:"kind"`
	Script          string   `json:"script"` // how the script is called: its name, or cas:HASH
	Message         string   `json:"message"`
	Line            int      `json:"line,omitempty"`        // in the script; 0 when unknown
	Column          int      `json:"column,omitempty"`      // 0 when unknown, as always in Lua
	SourceLine      string   `json:"source_line,omitempty"` // the line itself
	Stack           []Frame  `json:"stack,omitempty"`
	Troubleshooting []string `json:"troubleshooting,omitempty"`
	Suggestions     []string `json:"suggestions,omitempty"` // "did you mean …"
	Problems        []string `json:"problems,omitempty"`    // of params that do not fit, each

	language string
	cause    error
}

// Frame is one level of the script's stack, innermost first. Our own frames are
// not in it.
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
		return e.tongue() + " Syntax Error"
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
		return e.tongue() + " Runtime Error"
	}
}

// tongue is the name of the script's language.
func (e *Error) tongue() string {
	if e.language == JavaScript {
		return "JavaScript"
	}
	return "Lua"
}

// Error is the whole story, in the layout people and models know.
func (e *Error) Error() string {
	if e.Kind == ParamsError { // whoever called is at fault, not the script
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

// StackText is the stack, a line each.
func (e *Error) StackText() string {
	var out strings.Builder
	for _, frame := range e.Stack {
		fmt.Fprintf(&out, "  [%s] %s\n", e.tongue(), frame)
	}
	return out.String()
}

func (e *Error) Unwrap() error { return e.cause }

// Fault is the failure in the house's one shape, with itself as the details.
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

// timeoutError is the cause a run's own deadline carries.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the script ran longer than %s and was stopped", e.after)
}
