// Package workflow is the workflow module of scripts: several tools of the music backend
// in one call. It is written in Lua and JavaScript over mcp.hootenanny.
package workflow

import (
	_ "embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed workflow.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the global workflow.
func Module() host.Module {
	return host.Module{Name: "workflow", Page: page, Lua: prelude, JS: preludeJS}
}
