// Package base provides the globals that every script has: print and similar functions,
// and a few functions for lists and tables.
package base

import (
	"embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed base.md prelude.lua prelude.js
var files embed.FS

// Module is the globals print, eprint, map, filter, reduce, repr and
// table.is_array.
func Module() host.Module {
	return host.Module{Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "__print", Hidden: true, Kind: host.Observe, Effect: host.Bind(say)},
	}}
}

// say(stream, text, level?) records a line of output.
func say(w *host.Services, stream, text string, level *string) error {
	return w.Output.Print(stream, host.Or(level, ""), text, w.Clock.Now())
}
