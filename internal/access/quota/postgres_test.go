package quota_test

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestQuotaOfAnOrganisation, TestQuotaOnThreeNodes, TestJobsOfOrganisations,
		TestCPUOfAnOrganisation, TestCPUOnThreeNodes, TestQuotasChangeWhileTheServerRuns,
	)
}
