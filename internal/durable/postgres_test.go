package durable_test

import (
	"testing"

	"github.com/luanette/luanette/internal/db/dbtest"
)

// TestOnPostgres is every test that has a database, on the other one.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestRunsGoOn, TestCancelEndsTheContext, TestManyRunsAtOnce,
	)
}
