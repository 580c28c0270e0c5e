package hootserver

import "testing"

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]struct {
		after   string
		private bool
	}{
		"tcp://127.0.0.1:5580": {"tcp://127.0.0.1:5581", true},
		"tcp://127.0.0.1:0":    {"tcp://127.0.0.1:0", true},
		"tcp://localhost:*":    {"tcp://localhost:*", true},
		"tcp://*:5580":         {"tcp://*:5581", false},
		"tcp://[::1]:5580":     {"tcp://[::1]:5581", true},
		"tcp://10.0.0.1:5580":  {"tcp://10.0.0.1:5581", false},
		"ipc:///run/a":         {"ipc:///run/a.events", true},
	} {
		if got := NextEndpoint(endpoint); got != want.after {
			t.Errorf("after %s comes %s, want %s", endpoint, got, want.after)
		}
		if got := IsLocal(endpoint); got != want.private {
			t.Errorf("%s is private: %v", endpoint, got)
		}
	}
}
