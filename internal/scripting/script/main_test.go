package script

import (
	"os"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// TestMain gives the server's own limits a length that no honest script comes to on a
// machine that stalls.
func TestMain(m *testing.M) {
	maxTurnWait, describeLimits.Time = clocktest.Timeout, clocktest.Timeout
	os.Exit(m.Run())
}
