// Package builtin implements the tools that the server offers itself, one file per
// family. Each tool has its description for models in a Markdown file of its name.
// A family depends on other packages through small interfaces; its tools only
// convert arguments and results.
//
// The package also has the resources, prompts and completions of the MCP server,
// and the instructions that teach a model to use it.
package builtin

import (
	"context"
	"embed"
	"fmt"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// The types of tools.
type (
	Tool   = toolset.Tool
	Set    = toolset.Set
	Texter = toolset.Texter
	Object = toolset.Object
	JSON   = toolset.JSON
)

// NewSet makes a source of the tools of several families.
func NewSet(families ...[]Tool) *Set { return toolset.NewSet("", families...) }

// Define makes a tool of a function, described in <name>.md.
func Define[In, Out any](name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (Out, error)) Tool {
	return toolset.Define(texts, name, hints, do)
}

// Relay makes a tool that returns another tool's result unchanged.
func Relay[In any](name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (tool.Result, error)) Tool {
	return toolset.Relay(texts, name, hints, do)
}

// count returns a number with its noun: "1 job", "2 jobs".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
