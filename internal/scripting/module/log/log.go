// Package log is the log module of scripts: log lines with the run's trace.
package log

import (
	"context"
	"embed"
	"log/slog"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed log.md prelude.lua prelude.js
var files embed.FS

// Module is the global log.
func Module() host.Module {
	return host.Module{Name: "log", Text: host.ReadText(files), Funcs: []host.Func{
		at("debug", slog.LevelDebug),
		at("info", slog.LevelInfo),
		at("warn", slog.LevelWarn),
		at("error", slog.LevelError),
	}}
}

func at(name string, level slog.Level) host.Func {
	return host.Func{Name: name, Kind: host.Observe, Effect: host.Bind(func(ctx context.Context, w *host.Services, text string) error {
		return w.Output.Log(ctx, level, text, w.Clock.Now())
	})}
}
