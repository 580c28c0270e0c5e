package script

import (
	"os"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// TestMain sets limits that a correct script does not reach even on a slow machine.
func TestMain(m *testing.M) {
	describeLimits.Time = clocktest.Timeout
	os.Exit(m.Run())
}
