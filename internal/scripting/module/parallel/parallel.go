// Package parallel is the parallel module of scripts: it runs functions concurrently in
// one state. Tasks are coroutines; the calls they wait for run in parallel, the script
// itself does not. The scheduler is the prelude; the engine's binding starts the calls
// and waits for them.
package parallel

import (
	"embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed parallel.md prelude.lua
var files embed.FS

// Module is the global parallel.
func Module() host.Module {
	return host.Module{Name: "parallel", LuaOnly: true, Text: host.ReadText(files)}
}
