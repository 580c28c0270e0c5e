// Package log is the log module of scripts: log lines with the run's trace.
package log

import (
	"context"
	_ "embed"
	"log/slog"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed log.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the global log.
func Module() host.Module {
	return host.Module{Name: "log", Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
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
