package audit

import (
	"os"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// TestMain lets readers wait for a database that a busy machine holds up.
func TestMain(m *testing.M) {
	settling = clocktest.Timeout
	os.Exit(m.Run())
}
