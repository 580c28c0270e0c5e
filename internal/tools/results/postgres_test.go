package results_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs the few tests that together reach every statement of this package,
// and those about several nodes.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestOldResultsExpire, TestResultsBelongToTheirSetOfTools, TestShapesAreLearned)
}
