// Package parallel is the parallel module of scripts: several things at once on
// one state. Tasks are coroutines; what they wait for runs beside each other, the
// script itself never does. The scheduler is the prelude; starting and landing
// the calls belongs to the engine's binding.
package parallel

import (
	_ "embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed parallel.md
var page string

//go:embed prelude.lua
var prelude string

// Module is the global parallel.
func Module() host.Module {
	return host.Module{Name: "parallel", LuaOnly: true, Page: page, Lua: prelude}
}
