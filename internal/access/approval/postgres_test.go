package approval_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs all tests with a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestRequestsAreStoredUnchanged, TestInvalidDecisions, TestADecisionIsUsedUp, TestRememberedDecisions,
		TestDenyTakesPrecedenceUntilForgotten, TestRequestsExpire, TestWithdrawnRequests, TestDecidedElsewhere, TestPolicies,
		TestNobodyApprovesTheirOwnRequest, TestRememberedForOthers, TestTwoOfARole, TestOneDenialDenies, TestPlanOfSeveralRoles, TestDecisionsAtTheSameTime,
		TestDelegation, TestWebhookIsTold, TestEventsReachThoseWhoDecide, TestRoleOfTheChatsOrganisation, TestMailToDelegates, TestErasedDecider,
	)
}
