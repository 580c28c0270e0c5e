package conversation_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs all tests with a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestOrderPerPerson, TestFollowersSeeEverything, TestQueueIsBounded, TestRestart, TestTurnIsGivenUpAfterItsAttempts,
		TestTheSameKeyIsTheSameMessage, TestHistory, TestRequestOfATurn, TestRefusals, TestOrderAcrossNodes,
		TestReassignedMessageIsAnsweredOnce, TestRecheckCancelsReassignedTurns, TestDrain, TestPlacesDecideTheOrder,
		TestStop, TestStopOnAnotherNode, TestJournalSurvivesARestart, TestAttach, TestMediaSurviveARestart, TestUsageOfEarlierVersions,
		TestSharedConversationIsRead, TestCopyOfASharedConversation, TestWhoSharesAConversation,
	)
}
