package lua

import (
	"errors"
	"fmt"
)

// Error is an error raised by a script or by the engine on its behalf.
type Error struct {
	// Value is the error object: any value but usually a string that begins
	// with the position.
	Value Value
	// Traceback tells where the error was raised. It is filled in when the
	// error leaves the state through State.Call.
	Traceback string
	// Cause is the Go error a host function returned, if it did.
	Cause error
	// handled is set once a message handler has seen the error.
	handled bool
}

// Error returns the message as the standalone interpreter prints it.
func (e *Error) Error() string {
	if s, ok := e.Value.AsString(); ok {
		return s
	}
	if e.Value.isNumber() {
		return e.Value.String()
	}
	return fmt.Sprintf("(error object is a %s value)", e.Value.TypeName())
}

// Unwrap returns the host's error, if one is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Throw returns an error that raises v as it is.
func Throw(v Value) error { return &Error{Value: v} }

// Limit says which budget ran out.
type Limit string

// The budgets.
const (
	LimitSteps    Limit = "steps"
	LimitMemory   Limit = "memory"
	LimitReserve  Limit = "reserve" // of memory that several states share
	LimitDeadline Limit = "deadline"
	LimitContext  Limit = "context"
)

// BudgetError is returned when a budget of the state runs out or its context
// is done. Scripts can neither catch nor delay it.
type BudgetError struct {
	Limit Limit
	// Used and Allowed are in steps or bytes; both are 0 for other limits.
	Used, Allowed int64
	// Traceback tells where the script was.
	Traceback string
	// Cause is the context's or the reserve's error, if that was it.
	Cause error
}

// Error says what ran out.
func (e *BudgetError) Error() string {
	switch e.Limit {
	case LimitSteps:
		return fmt.Sprintf("script used up its %d steps", e.Allowed)
	case LimitMemory:
		return fmt.Sprintf("script needs more than its %d bytes of memory", e.Allowed)
	case LimitReserve:
		return fmt.Sprintf("script gets no more memory: %v", e.Cause)
	case LimitDeadline:
		return "script ran past its deadline"
	}
	return fmt.Sprintf("script was cancelled: %v", e.Cause)
}

// Unwrap returns the context's error, if that was the cause.
func (e *BudgetError) Unwrap() error { return e.Cause }

// isFatal reports errors no protected call may swallow.
func isFatal(err error) bool {
	if _, ok := err.(*Error); ok || err == nil { //nolint:errorlint // nearly always; wrapped ones follow
		return false
	}
	var budget *BudgetError
	var exit *ExitError
	return errors.As(err, &budget) || errors.As(err, &exit)
}

// asError returns the *Error that err is or wraps, or makes one of its text.
func (s *State) asError(err error) *Error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // nearly always; wrapped ones follow
		return e
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Value: String(err.Error()), Cause: err}
}
