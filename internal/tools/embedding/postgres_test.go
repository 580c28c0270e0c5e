package embedding_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs the tests that store vectors on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestToolsAreFoundByMeaning, TestUnusedVectorsAreRemoved)
}
