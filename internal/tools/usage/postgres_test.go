package usage_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs every test that uses a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestUsedToolsAreFound, TestOtherNodesKnow, TestRewordedSearches, TestOnlySuccessTeaches, TestUseDecays, TestChangedDefinitionsAreForgotten,
		TestUsageIsPrivate, TestUsageOfOrganisations, TestNoMemberPoisons, TestUsageIsBounded, TestUsageIsErased, TestUsageIsSwitchedOff,
	)
}
