package job_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs every test that needs a database on Postgres, except those in a
// bubble of synctest, which cannot contain a connection.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestAJobWaitsForApproval, TestAJobThatWaitsCanBeCancelled, TestJobRunsToItsEnd, TestFailure, TestCancel, TestPoll,
		TestListAndStats, TestCloseAndContinue, TestOneQueueAtATime, TestReadOnly,
		TestInvalidSchedules, TestJobWaitsForALogin, TestNobodyLogsIn, TestSubmitOnce, TestSubmitOnceAtOnce,
	)
}
