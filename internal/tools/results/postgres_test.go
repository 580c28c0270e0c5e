package results_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres is every test that has a database, on the other one.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestStoredResultsAreRead, TestResultsBelongToTheirUser, TestOldResultsExpire, TestPreview, TestShapesAreLearned,
	)
}
