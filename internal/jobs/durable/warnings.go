package durable

import (
	"context"
	"errors"
	"log/slog"
	"strings"
)

// warnings lets through what a person should look at. DBOS tells all it does, and that
// it was interrupted when it is told to stop, by closing closing.
func warnings(log *slog.Logger, closing <-chan struct{}) slog.Handler {
	return wary{log.Handler(), closing}
}

type wary struct {
	slog.Handler
	closing <-chan struct{}
}

func (w wary) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w wary) Handle(ctx context.Context, r slog.Record) error {
	select {
	case <-w.closing:
		if isInterruption(r) {
			return nil
		}
	default:
	}
	return w.Handler.Handle(ctx, r)
}

// isInterruption tells whether a record is about something that was called off.
func isInterruption(r slog.Record) (is bool) {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			is = is || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "canceling statement due to user request")
		}
		return !is
	})
	return is
}

func (w wary) WithAttrs(attrs []slog.Attr) slog.Handler {
	return wary{w.Handler.WithAttrs(attrs), w.closing}
}

func (w wary) WithGroup(name string) slog.Handler { return wary{w.Handler.WithGroup(name), w.closing} }
