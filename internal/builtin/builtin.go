// Package builtin holds our own tools, one file per family: how each is called,
// what it answers, and its description for models in a Markdown file of its name.
// The work itself is done in the rooms below, which every family reaches through
// a small interface it states; a tool here only translates.
//
// Around the tools, for the MCP server: resources that show what there is,
// completions, and the instructions that teach a model to use the hub.
package builtin

import (
	"context"
	"embed"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// What tools are made of.
type (
	Tool   = toolset.Tool
	Set    = toolset.Set
	Texter = toolset.Texter
	Object = toolset.Object
	JSON   = toolset.JSON
)

// NewSet makes a source of several families' tools.
func NewSet(families ...[]Tool) *Set { return toolset.NewSet("", families...) }

// Define makes a tool of a function, described in <name>.md.
func Define[In, Out any](name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (Out, error)) Tool {
	return toolset.Define(texts, name, hints, do)
}

// Relay makes a tool whose result is another tool's, handed on as it is.
func Relay[In any](name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (tool.Result, error)) Tool {
	return toolset.Relay(texts, name, hints, do)
}
