// Package slowtest leaves tests that take long out of a plain `go test ./...`.
package slowtest

import (
	"os"
	"testing"
)

// variable is set by the Makefile where all tests are to run.
const variable = "LUANETTE_TEST_ALL"

// Skip skips a test that repeats others at length: on another database, or in more cases.
// `make test` runs it, and so does CI.
func Skip(t testing.TB) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("slow: `make test` runs it, or " + variable + "=1")
	}
}
