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

// That something was called off is worth a word, but not when all is called off.
func TestAStopIsNoError(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	closing := make(chan struct{})
	log := slog.New(warnings(slog.New(slog.NewTextHandler(&said, nil)), closing)).With("queue", "q")
	say := func() {
		log.Info("looked")
		log.Error("not taken", "partition_key", "", "error", fmt.Errorf("begin: %w", context.Canceled))
		log.Error("called off", "error", errors.New("ERROR: canceling statement due to user request (SQLSTATE 57014)"))
		log.Error("broken", "error", errors.New("disk full"))
	}
	heard := func(want ...string) {
		t.Helper()
		if lines := strings.Count(said.String(), "\n"); lines != len(want) {
			t.Errorf("%d lines, want %d:\n%s", lines, len(want), &said)
		}
		for _, message := range want {
			if !strings.Contains(said.String(), message) {
				t.Errorf("nobody says %q", message)
			}
		}
		said.Reset()
	}
	say()
	heard("not taken", "called off", "broken")
	close(closing)
	say()
	heard("broken")
}
