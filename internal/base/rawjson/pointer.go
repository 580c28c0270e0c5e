package rawjson

import (
	"encoding/json"
	"strconv"
	"strings"
)

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// UnescapeToken decodes one reference token of a JSON pointer (RFC 6901): ~1 is a
// slash, ~0 a tilde.
func UnescapeToken(token string) string { return pointerEscapes.Replace(token) }

// Descend returns the part of a value that one reference token of a JSON pointer names:
// the member of an object, or the item of a list, counted from 0.
func Descend(value json.RawMessage, token string) (json.RawMessage, bool) {
	name := UnescapeToken(token)
	items, ok := Items(value)
	if !ok {
		return Get(value, name)
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

// Path is what the names of a path such as meta/next lead to.
func Path(value json.RawMessage, path string) (json.RawMessage, bool) {
	for _, name := range strings.Split(path, "/") {
		var ok bool
		if value, ok = Get(value, name); !ok {
			return nil, false
		}
	}
	return value, true
}
