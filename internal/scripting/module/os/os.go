// Package os is the part of Lua's os library that scripts have: time, and the
// environment variables that the configuration allows.
package os

import (
	"embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed os.md prelude.lua
var files embed.FS

// Module is the global os.
func Module() host.Module {
	return host.Module{Name: "os", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "getenv", Kind: host.Read, Effect: host.Bind(getenv), Varies: true},
		{Name: "__now", Hidden: true, Kind: host.Nondeterministic, Effect: host.Bind(now), Varies: true},
	}}
}

func getenv(w *host.Services, name string) *string {
	if w.Getenv == nil {
		return nil
	}
	if value, ok := w.Getenv(name); ok {
		return &value
	}
	return nil
}

// now returns the run's time in seconds, with its fraction.
func now(w *host.Services) float64 { return float64(w.Clock.Milliseconds()) / 1000 }
