package conversation_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres is every test that has a database, on the other one.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestOrderPerPerson, TestFollowersSeeEverything, TestALineIsBounded, TestRestart, TestATurnThatNeverEnds,
		TestTheSameKeyIsTheSameMessage, TestHistory, TestWhatHoldsForATurn, TestRefusals, TestOrderAcrossNodes,
		TestReassignedMessageIsAnsweredOnce, TestRecheckCancelsReassignedTurns, TestDrain,
	)
}
