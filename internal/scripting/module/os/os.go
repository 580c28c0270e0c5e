// Package os is the part of Lua's os library that scripts have: time, and the
// environment variables that the configuration allows.
package os

import (
	"context"
	_ "embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed os.md
var page string

//go:embed prelude.lua
var prelude string

// Module is the global os.
func Module() host.Module {
	return host.Module{Name: "os", Page: page, Lua: prelude, Funcs: []host.Func{
		{Name: "getenv", Kind: host.Read, Effect: getenv},
		{Name: "__now", Hidden: true, Kind: host.Nondeterministic, Effect: now},
	}}
}

func getenv(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil || w.Getenv == nil {
		return []host.Value{nil}, err
	}
	if value, ok := w.Getenv(name); ok {
		return []host.Value{value}, nil
	}
	return []host.Value{nil}, nil
}

// now returns the run's time in seconds, with its fraction.
func now(_ context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
	return []host.Value{float64(w.Clock.Milliseconds()) / 1000}, nil
}
