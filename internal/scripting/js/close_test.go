package js

import (
	"context"
	"testing"
)

// Nothing under way is nothing to wait for: a program that comes late to its end
// must not fail for it.
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
