package builtin

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Keys in a call's _meta with which the command line passes information about a
// script.
const (
	FileKey  = "luanette/file"  // the file it is in, for messages
	TypedKey = "luanette/typed" // its params as typed, by name
)

// attributed adds the script's file and the typed params to a request.
func attributed(call tool.Call, q script.Request) script.Request {
	if file, ok := rawjson.GetText(call.Meta, FileKey); ok && q.Hash.IsZero() {
		q.Name = fileLabel(file)
	}
	if raw, ok := rawjson.Get(call.Meta, TypedKey); ok && json.Unmarshal(raw, &q.TypedParams) != nil {
		q.TypedParams = nil
	}
	return q
}

// fileLabel returns a file's name for positions in messages: shortened, and without
// characters that would end it there.
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
