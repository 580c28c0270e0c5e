package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A cancelled query is logged, unless the engine is closing.
func TestInterruptionWhileClosingIsNotLogged(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	closing := make(chan struct{})
	log := slog.New(warningsOnly(slog.New(slog.NewTextHandler(&logged, nil)), closing)).With("queue", "q")
	write := func() {
		log.Info("polled")
		log.Error("not dequeued", "partition_key", "", "error", fmt.Errorf("begin: %w", context.Canceled))
		log.Error("cancelled", "error", errors.New("ERROR: canceling statement due to user request (SQLSTATE 57014)"))
		log.Error("broken", "error", errors.New("disk full"))
	}
	expect := func(want ...string) {
		t.Helper()
		if lines := strings.Count(logged.String(), "\n"); lines != len(want) {
			t.Errorf("%d lines, want %d:\n%s", lines, len(want), &logged)
		}
		for _, message := range want {
			if !strings.Contains(logged.String(), message) {
				t.Errorf("%q is not logged", message)
			}
		}
		logged.Reset()
	}
	write()
	expect("not dequeued", "cancelled", "broken")
	close(closing)
	write()
	expect("broken")
}
