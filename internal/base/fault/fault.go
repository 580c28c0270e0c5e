// Package fault has the error type that all interfaces of the program return: a code for
// programs, a message for people, a hint that says what to do, and the cause.
package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Code classifies a fault for programs. Every code has a page in docs/errors.
type Code string

// The codes. A new one needs a page docs/errors/<code>.md with its cause and its
// solution.
const (
	InvalidParams Code = "invalid_params"    // the caller's arguments are not valid
	ToolNotFound  Code = "tool_not_found"    // no tool of this name
	NotFound      Code = "not_found"         // no such script, job, session, upstream …
	Conflict      Code = "conflict"          // it exists already, or has changed meanwhile
	Unavailable   Code = "unavailable"       // an upstream or backend is unreachable; a retry may help
	NeedsAuth     Code = "needs_auth"        // the other side requires credentials that are missing
	Denied        Code = "permission_denied" // a policy forbids it; a retry does not help
	Limit         Code = "limit_exceeded"    // a budget, quota or size limit was reached
	Timeout       Code = "timeout"           // it took longer than allowed
	Cancelled     Code = "cancelled"         // the caller or a person cancelled it
	Upstream      Code = "upstream_error"    // the other side returned an error or an invalid response
	Script        Code = "script_error"      // a script failed: syntax, runtime or contract
	Config        Code = "invalid_config"    // a configuration file, variable or flag is wrong
	Internal      Code = "internal_error"    // a bug in this program
)

// Error is the error type. Msg says what was being done, in lower case without a full
// stop. Hint says what to do about it. Details is for programs.
type Error struct {
	Code    Code
	Msg     string
	Hint    string
	Details json.RawMessage
	Err     error
}

// New returns a fault without a cause.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Wrap returns a fault that says what was being done when err happened. errors.Is
// finds the cause.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...), Err: err}
}

// WithHint returns a copy with a hint that says what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithDetails returns a copy with v as details for programs.
func (e *Error) WithDetails(v any) *Error {
	c := *e
	if raw, err := json.Marshal(v); err == nil {
		c.Details = raw
	}
	return &c
}

// Error returns "doing: cause", without the hint.
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

// inJSON is a fault in JSON: {code, message, hint?, details?}, which all endpoints use.
type inJSON struct {
	Code    Code            `json:"code"`
	Message string          `json:"message"`
	Hint    string          `json:"hint,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// MarshalJSON writes the fault without its cause.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(inJSON{e.Code, e.Error(), HintOf(e), e.Details})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Error) UnmarshalJSON(text []byte) error {
	var in inJSON
	err := json.Unmarshal(text, &in)
	*e = Error{Code: in.Code, Msg: in.Message, Hint: in.Hint, Details: in.Details}
	return err
}

// From converts any error to a fault. The first fault in its chain determines code,
// hint and details; the message is that of the whole chain.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var f *Error
	if errors.As(err, &f) {
		if error(f) == err { //nolint:errorlint // whether err itself is the fault, not one in its chain
			return f
		}
		return &Error{Code: f.Code, Hint: f.Hint, Details: f.Details, Err: err}
	}
	return &Error{Code: CodeOf(err), Err: err}
}

// CodeOf returns the code of err: that of its fault, or timeout or cancelled for the
// error of a context, or internal_error.
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

// HintOf returns the first hint in err's chain, or "". A hint that the text of err has already
// is not repeated.
func HintOf(err error) string {
	whole := err
	for err != nil {
		var f *Error
		if !errors.As(err, &f) {
			return ""
		}
		if f.Hint != "" && !strings.Contains(whole.Error(), f.Hint) {
			return f.Hint
		}
		err = f.Err
	}
	return ""
}
