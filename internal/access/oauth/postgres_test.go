package oauth_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs on Postgres what runs on SQLite.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestLoginInABrowser, TestStateIsUsedOnce, TestResponsesOfOtherIssuersAreRefused, TestTokensAreRenewedAheadOfTime, TestOneRenewsForAll,
		TestEndedLogin, TestMoreScopes, TestDeviceLogin, TestClientCredentials, TestARowIsBoundToItsUpstream,
		TestLoginsWithoutOwner, TestOneRenewsForAllOfAnOwner, TestFailedRenewal, TestPausesGrow, TestEndedOwnLogin, TestNodeDiesWhileItRenews,
		TestEnd, TestEndOf, TestRevocationIsRepeated, TestOwnersAreSeparate, TestAttackLinkOfSomebodyElse, TestARowIsBoundToItsOwner,
	)
}
