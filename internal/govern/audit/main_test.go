package audit

import (
	"os"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// TestMain lets readers wait longer: a busy machine may delay the database.
func TestMain(m *testing.M) {
	flushTimeout = clocktest.Timeout
	os.Exit(m.Run())
}
