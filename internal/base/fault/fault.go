// Package fault has the error type that all interfaces of the program return: a code for
// programs, a message for people, a hint that says what to do, and the cause.
package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Code classifies a fault for programs. Every code has a page in docs/errors.
type Code string

// The codes. A new one needs a page docs/errors/<code>.md with its cause and its cure.
const (
	InvalidParams Code = "invalid_params"    // the caller's arguments do not fit
	ToolNotFound  Code = "tool_not_found"    // no tool of that name
	NotFound      Code = "not_found"         // no such script, job, session, upstream …
	Conflict      Code = "conflict"          // the thing exists already, or changed meanwhile
	Unavailable   Code = "unavailable"       // an upstream or backend is away; trying again may help
	NeedsAuth     Code = "needs_auth"        // the other side wants credentials we do not have
	Denied        Code = "permission_denied" // policy forbids it; trying again will not help
	Limit         Code = "limit_exceeded"    // a budget, quota or size was used up
	Timeout       Code = "timeout"           // it took longer than allowed
	Cancelled     Code = "cancelled"         // somebody called it off
	Upstream      Code = "upstream_error"    // the other side answered with an error or with nonsense
	Script        Code = "script_error"      // a script failed: syntax, runtime or contract
	Config        Code = "invalid_config"    // a configuration file, variable or flag is wrong
	Internal      Code = "internal_error"    // our own mistake
)

// Error is the error type. Msg reads "what we were doing", lower case,
// no full stop; Hint says what to do about it; Details is for programs.
type Error struct {
	Code    Code
	Msg     string
	Hint    string
	Details json.RawMessage
	Err     error
}

// New makes a fault with no cause.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Wrap says what we were doing when err happened. It keeps the cause for errors.Is.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...), Err: err}
}

// WithHint returns a copy that tells the reader what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithDetails returns a copy that carries v for programs.
func (e *Error) WithDetails(v any) *Error {
	c := *e
	if raw, err := json.Marshal(v); err == nil {
		c.Details = raw
	}
	return &c
}

// Error reads "doing: cause". The endpoint prints the hint.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Msg
	case e.Msg == "":
		return e.Err.Error()
	default:
		return e.Msg + ": " + e.Err.Error()
	}
}

func (e *Error) Unwrap() error { return e.Err }

// MarshalJSON writes {code, message, hint?, details?}, the same at every endpoint.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code    Code            `json:"code"`
		Message string          `json:"message"`
		Hint    string          `json:"hint,omitempty"`
		Details json.RawMessage `json:"details,omitempty"`
	}{e.Code, e.Error(), HintOf(e), e.Details})
}

// From gives any error the one shape: the first fault in its chain decides code,
// hint and details, while the message stays the whole chain's.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var f *Error
	if errors.As(err, &f) {
		if error(f) == err { //nolint:errorlint // asks whether err itself is the fault, not one within it
			return f
		}
		return &Error{Code: f.Code, Hint: f.Hint, Details: f.Details, Err: err}
	}
	return &Error{Code: CodeOf(err), Err: err}
}

// CodeOf tells the code of err: its fault's, or what a context says of itself,
// or internal_error.
func CodeOf(err error) Code {
	var f *Error
	switch {
	case errors.As(err, &f):
		return f.Code
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Cancelled
	default:
		return Internal
	}
}

// HintOf finds the first hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		var f *Error
		if !errors.As(err, &f) {
			return ""
		}
		if f.Hint != "" {
			return f.Hint
		}
		err = f.Err
	}
	return ""
}
