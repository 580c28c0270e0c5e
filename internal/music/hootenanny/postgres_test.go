package hootenanny

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs every test that uses a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestTransportPublishesBeatsMarkersAndRegions, TestTransportRunsByItself, TestPositionFollowsTheClock, TestProjectsAreStored,
		TestCrashPausesProjects, TestSessionsHaveTheirProjects, TestProjectNames, TestOnlySomeProjectsPlay,
		TestEventsExpire, TestEveryToolFollowsTheRules, TestPageOfMusic,
	)
}
