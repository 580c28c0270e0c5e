package publish

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs the few tests that together reach every statement of this package.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestNewVersionReplacesTheTool)
}
