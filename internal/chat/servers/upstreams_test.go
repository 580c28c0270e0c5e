package servers

import (
	"slices"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/mcp/upstream"
)

// TestSilentServersAreAwaitedOnce checks that messages wait for servers that were not tried
// yet, all of them until the same time, and then no more.
func TestSilentServersAreAwaitedOnce(t *testing.T) {
	t.Parallel()
	start := time.Now()
	known := []upstream.Status{
		{Name: "connected", State: upstream.StateConnected, Since: start},
		{Name: "silent", State: upstream.StateConnecting, Since: start},
		{Name: "refuses", State: upstream.StateConnecting, Since: start, Attempt: 1},
		{Name: "starts", State: upstream.StateStarting, Since: start.Add(time.Second)},
	}
	for after, want := range map[time.Duration]struct {
		names []string
		until time.Time
	}{
		2 * time.Second:              {[]string{"silent", "starts"}, start.Add(time.Second + discoverWait)},
		discoverWait:                 {[]string{"starts"}, start.Add(time.Second + discoverWait)},
		discoverWait + 2*time.Second: {nil, time.Time{}},
	} {
		if names, until := untried(known, start.Add(after)); !slices.Equal(names, want.names) || !until.Equal(want.until) {
			t.Errorf("after %v: %v until %v, want %+v", after, names, until, want)
		}
	}
}
