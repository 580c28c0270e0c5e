package job_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres is every test that has a database, on the other one, except those
// in a bubble of synctest, which a connection cannot be in.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestAJobWaitsForApproval, TestAJobThatWaitsCanBeCancelled, TestJobRunsToItsEnd, TestFailure, TestCancel, TestPoll,
		TestListAndStats, TestCloseAndGoOn, TestOneQueueAtATime, TestReadOnly,
		TestWrongSchedules,
	)
}
