package script

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/luanette/luanette/lua"
)

// legible writes values for somebody who looks at them: what JSON lacks is text, such as a
// function, nan, or a table that contains itself. It reports false if they are too large.
func legible(values []lua.Value) (json.RawMessage, bool) {
	w := legibleWriter{inside: map[lua.Value]bool{}, left: legibleParts}
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = w.of(v)
	}
	var shown any = all
	if len(all) == 1 {
		shown = all[0]
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(shown)
	return bytes.TrimSpace(text.Bytes()), err == nil && w.left > 0
}

const (
	legibleParts = 10_000 // values, with those in tables, and bytes of text for a hundredth each
	legibleDepth = 8      // of tables
)

type legibleWriter struct {
	inside map[lua.Value]bool // the tables around the current value
	left   int                // of legibleParts
}

func (w *legibleWriter) of(v lua.Value) any {
	w.left--
	switch v.Kind() {
	case lua.KindNil:
		return nil
	case lua.KindBool:
		return v.Truthy()
	case lua.KindInt, lua.KindFloat:
		if n, ok := v.AsFloat(); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
			return v.String()
		}
		return json.RawMessage(v.String())
	case lua.KindTable:
		return w.table(v)
	}
	if v == lua.Null {
		return nil
	}
	text := v.String()
	if f, ok := v.AsFunction(); ok {
		text = strings.TrimSpace("function " + f.HostName())
	}
	w.left -= len(text) / 100
	return strings.ToValidUTF8(text, "\uFFFD")
}

// table returns a list if the keys are 1 to n, and otherwise an object whose keys are text.
func (w *legibleWriter) table(v lua.Value) any {
	t, _ := v.AsTable()
	if w.inside[v] || len(w.inside) >= legibleDepth || w.left <= 0 {
		return v.String()
	}
	w.inside[v] = true
	defer delete(w.inside, v)
	isList := t.Len() > 0 || t.IsArray()
	list, fields := []any{}, map[string]any{}
	for key, value := range t.All() {
		n, ok := key.AsInt()
		isList = isList && ok && n == int64(len(list))+1
		name, shown := key.String(), w.of(value)
		w.left -= len(name) / 100
		list, fields[name] = append(list, shown), shown
	}
	if isList {
		return list
	}
	return fields
}
