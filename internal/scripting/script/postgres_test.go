package script

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs every test that uses a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestPublishedScriptsAreTools, TestEmptyTablesTakeTheKindThatIsWanted, TestANewVersionMovesTheTool,
		TestWhatCannotBePublished, TestFailuresOfPublishedScripts, TestPublishedScriptsCallEachOtherOnlySoDeep,
		TestASessionKeepsWhatTurnsLeave, TestOutputBelongsToItsTurn, TestErrorsKeepTheSession, TestAStoppedTurnChangesNothing,
		TestResetAndForkAndClose, TestSessionsSurviveARestart, TestADamagedStateCanBeReset, TestSessionsBelongToTheirOwner,
		TestIdleSessionsExpire, TestTurnsWaitForEachOther, TestSessionsAreSharedByProcesses, TestReadOnlyTurnWritesNothing,
		TestSessionLimits, TestTurnsKeepTheirOrder, TestATurnCannotWaitForItself,
		TestFilesLeftOpenAreSavedByTheirTurn, TestUnsavableValuesAreNamed,
	)
}
