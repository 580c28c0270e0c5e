package builtin

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Keys in a call's _meta by which the command line tells of a script it runs what no
// model would say.
const (
	FileKey  = "luanette/file"  // the file it is in, for messages
	TypedKey = "luanette/typed" // its params as somebody typed them, by name
)

// attributed is a request that knows the file of its script, and what of its params
// was typed.
func attributed(call tool.Call, q script.Request) script.Request {
	if file, ok := rawjson.GetText(call.Meta, FileKey); ok && q.Hash.IsZero() {
		q.Name = fileLabel(file)
	}
	if raw, ok := rawjson.Get(call.Meta, TypedKey); ok && json.Unmarshal(raw, &q.TypedParams) != nil {
		q.TypedParams = nil
	}
	return q
}

// fileLabel is a file's name as positions in messages have it: without what would
// end it there, and not too long.
func fileLabel(file string) string {
	const longest = 64
	label := strings.Map(func(r rune) rune {
		if r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, file)
	if r := []rune(label); len(r) > longest {
		label = string(r[len(r)-longest:]) // the extension is at the end
	}
	return label
}
