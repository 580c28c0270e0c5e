package abc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// maxDiagnostics is the largest number of errors, and of warnings, of a text.
const maxDiagnostics = 100

// Position is a place in the text; both count from 1, columns in characters.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Diagnostic is an error or warning at a position.
type Diagnostic struct {
	Position
	Message string `json:"message"`
}

// String reads "line 3, column 7: message".
func (d Diagnostic) String() string {
	return fmt.Sprintf("line %d, column %d: %s", d.Line, d.Column, d.Message)
}

// Diagnostics are the errors and warnings of a parse in order, at most a hundred of
// each. Errors make a tune invalid, warnings do not.
type Diagnostics struct {
	Errors   []Diagnostic `json:"errors"`
	Warnings []Diagnostic `json:"warnings"`
}

// Valid reports whether there are no errors.
func (d Diagnostics) Valid() bool { return len(d.Errors) == 0 }

// Err is nil for a valid tune, else a fault that names the first error and
// carries all of them as details.
func (d Diagnostics) Err() error {
	if d.Valid() {
		return nil
	}
	msg := "read abc: " + d.Errors[0].String()
	if more := len(d.Errors) - 1; more > 0 {
		msg += fmt.Sprintf(" (and %d more)", more)
	}
	return fault.New(fault.InvalidParams, "%s", msg).
		WithHint("correct the text at the lines named; a tune needs X:, T: and K: fields, then notes").
		WithDetails(d)
}

func (d *Diagnostics) fail(at Position, format string, args ...any) {
	d.Errors = note(d.Errors, at, format, args)
}

func (d *Diagnostics) warn(at Position, format string, args ...any) {
	d.Warnings = note(d.Warnings, at, format, args)
}

// warnOnce adds a warning unless another has the same text.
func (d *Diagnostics) warnOnce(at Position, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(d.Warnings, func(w Diagnostic) bool { return w.Message == text }) {
		d.warn(at, "%s", text)
	}
}

func note(list []Diagnostic, at Position, format string, args []any) []Diagnostic {
	if len(list) >= maxDiagnostics {
		return list
	}
	return append(list, Diagnostic{at, strings.ToValidUTF8(fmt.Sprintf(format, args...), "�")})
}
