package builtin_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs the database tests on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestScriptWaitsForApprovalAndContinues, TestTurnWaitsForApproval, TestApprovalsSurviveARestart, TestAnApprovedScriptSurvives,
		TestJobTools, TestJobCancelStopsLoopsAndCalls, TestJobResources, TestScheduleTools, TestLargeResultsAreStored, TestStoredScripts,
		TestScriptSearch, TestPublishing, TestSessionsPersist, TestSessionsOfOtherUsersAreNotFound,
	)
}
