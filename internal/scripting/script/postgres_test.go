package script

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs every test that uses a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestPublishedScriptsAreTools, TestEmptyTablesGetTheParameterType, TestNewVersionReplacesTheTool,
		TestPublishRefuses, TestScriptsOfOrganisations, TestScriptsOfOtherOrganisations, TestFailuresOfPublishedScripts, TestNestingOfPublishedScriptsIsLimited,
		TestSessionKeepsGlobals, TestOutputBelongsToItsTurn, TestErrorsKeepTheSession, TestStoppedTurnChangesNothing,
		TestResetAndForkAndClose, TestSessionsSurviveARestart, TestDamagedStateCanBeReset, TestSessionsBelongToTheirOwner,
		TestIdleSessionsExpire, TestTurnsWaitForEachOther, TestSessionsAreSharedByProcesses, TestReadOnlyTurnWritesNothing,
		TestSessionLimits, TestTurnsKeepTheirOrder, TestTurnCannotWaitForItself,
		TestFilesLeftOpenAreSavedByTheirTurn, TestUnsavableValuesAreNamed,
		TestNamedSessionIsCreatedOnFirstUse, TestNamesReachTheirSession, TestFirstUsesAtOnceShareASession, TestTurnsAreNumbered,
		TestJavaScriptSessionsSurviveAnUpgrade, TestSessionWithoutTurnsIsNotRebuilt,
	)
}
