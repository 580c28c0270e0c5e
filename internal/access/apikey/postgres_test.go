package apikey_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs on Postgres what runs on SQLite.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestKeyLifecycle, TestKeysExpire, TestNodesShareKeys, TestKeysOfTheConfiguration, TestSessions, TestBudget, TestAdopt)
}
