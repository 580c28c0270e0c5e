// Package workflow is the workflow module of scripts: several tools of the music backend
// in one call. It is written in Lua and JavaScript over mcp.hootenanny.
package workflow

import (
	"embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed workflow.md prelude.lua prelude.js
var files embed.FS

// Module is the global workflow.
func Module() host.Module {
	return host.Module{Name: "workflow", Text: host.ReadText(files)}
}
