package durable

import (
	"context"
	"errors"
	"log/slog"
	"strings"
)

// warningsOnly passes warnings and errors on. DBOS logs everything it does, and once
// closing is closed it logs the interruption of its own queries, which is expected.
func warningsOnly(log *slog.Logger, closing <-chan struct{}) slog.Handler {
	return warnings{log.Handler(), closing}
}

type warnings struct {
	slog.Handler
	closing <-chan struct{}
}

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	select {
	case <-w.closing:
		if isInterruption(r) {
			return nil
		}
	default:
	}
	return w.Handler.Handle(ctx, r)
}

// isInterruption tells whether a record is about a cancelled query.
func isInterruption(r slog.Record) (is bool) {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			is = is || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "canceling statement due to user request")
		}
		return !is
	})
	return is
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs), w.closing}
}

func (w warnings) WithGroup(name string) slog.Handler {
	return warnings{w.Handler.WithGroup(name), w.closing}
}
