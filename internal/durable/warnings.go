package durable

import (
	"context"
	"log/slog"
)

// warnings lets through what a person should look at. DBOS tells all it does.
func warnings(log *slog.Logger) slog.Handler {
	if log == nil {
		return slog.DiscardHandler
	}
	return wary{log.Handler()}
}

type wary struct{ slog.Handler }

func (w wary) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w wary) WithAttrs(attrs []slog.Attr) slog.Handler { return wary{w.Handler.WithAttrs(attrs)} }

func (w wary) WithGroup(name string) slog.Handler { return wary{w.Handler.WithGroup(name)} }
