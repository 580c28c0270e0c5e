package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

// TestThinned logs the same ten times a second for a minute, beside other messages.
func TestThinned(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	away := errors.New("away")
	v := clock.NewVirtual(time.Unix(0, 0))
	log := Thinned(slog.New(slog.NewTextHandler(&out, nil)), func(err error) bool { return errors.Is(err, away) }, v)
	with := log.With("part", "nodes").WithGroup("g")
	for range 600 {
		with.Warn("nodes not checked", "error", fmt.Errorf("read: %w", away))
		v.Advance(100 * time.Millisecond)
	}
	log.Warn("keys not read", "error", away)
	log.Warn("nodes not checked", "error", errors.New("something else"))
	log.Info("connected")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || strings.Contains(lines[0], "left_out") || !strings.Contains(lines[1], "left_out=299") {
		t.Errorf("logged\n%s", out.String())
	}
}

// TestDurationsAreSeconds checks that JSON has numbers that people and programs understand.
func TestDurationsAreSeconds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	handler, err := newConsole(Options{LogFormat: "json", Stderr: &out}, slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	slog.New(handler).Info("closing", "limit", 1500*time.Millisecond)
	if !strings.Contains(out.String(), `"limit":1.5}`) {
		t.Error(out.String())
	}
}
