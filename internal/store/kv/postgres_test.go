package kv_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs every test that uses a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestValuesAreDurable, TestListByPrefix, TestValuesExpire, TestSwapCounts, TestSwapCompares, TestSwapIsRepeated)
}
