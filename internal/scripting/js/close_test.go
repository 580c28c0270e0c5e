package js

import (
	"context"
	"testing"
)

// TestCloseLateButIdle checks that Close succeeds with an expired context if nothing is in
// progress.
func TestCloseLateButIdle(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		engine, err := NewEngine(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := engine.Close(late); err != nil {
			t.Fatal(err)
		}
	}
}
