// Package typedecl writes tools as typed declarations, in TypeScript and in Lua with
// the annotations of LuaLS: models read these best before they write code that calls
// the tools. Types are made from JSON Schema of upstreams, which is not trusted:
// whatever it contains, the text stays a declaration of bounded size, and the schema
// appears only in comments, names and literals.
package typedecl

import (
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/core/tool"
)

// Tool is a tool to declare.
type Tool struct {
	tool.Ref
	Description string
	Input       json.RawMessage // JSON Schema of the arguments
	Output      json.RawMessage // and of the result, or nil
	Learned     int             // when Output was learned: from how many results
	ReadOnly    bool
	Deprecated  bool
}

// Of is a tool as its definition says.
func Of(info *tool.Info) Tool {
	return Tool{
		Ref: info.Ref, Description: info.Description, Input: info.Input, Output: info.Output, ReadOnly: info.Hints.ReadOnly,
		Deprecated: info.Deprecated(),
	}
}

// notes are what follows the description of a tool.
func (t *Tool) notes() []string {
	var notes []string
	if t.ReadOnly {
		notes = append(notes, "Only reads.")
	}
	if t.Learned > 0 {
		results := "results"
		if t.Learned == 1 {
			results = "result"
		}
		notes = append(notes, fmt.Sprintf("The result's type was learned from %d %s: others may differ.", t.Learned, results))
	}
	return notes
}
