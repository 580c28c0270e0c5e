// Package base provides the globals that every script has: print and similar functions,
// and a few functions for lists and tables.
package base

import (
	_ "embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed base.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the globals print, eprint, map, filter, reduce, repr and
// table.is_array.
func Module() host.Module {
	return host.Module{Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
		{Name: "__print", Hidden: true, Kind: host.Observe, Effect: host.Bind(say)},
	}}
}

// say(stream, text, level?) records a line of output.
func say(w *host.Services, stream, text string, level *string) error {
	return w.Output.Print(stream, host.Or(level, ""), text, w.Clock.Now())
}
