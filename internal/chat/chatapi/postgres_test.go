package chatapi_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs all tests with a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestAnswer, TestStream, TestStreamSendsErrors, TestSilentStreamSendsKeepalives, TestClientDisconnects, TestFailures,
		TestQueueIsBounded, TestRate, TestKeys, TestNoRouteIsOpen, TestSettings, TestCallback, TestCallbackAfterARestart,
		TestLogs,
	)
}
