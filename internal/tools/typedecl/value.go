package typedecl

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

// readValue is the type of a value, with the types of its items or properties.
func readValue(value json.RawMessage, depth int) *form {
	f := (&form{kind: literal, value: compact(value)}).orNull()
	if f.kind != literal || len(f.value) == 0 || depth > deepest {
		return f.widened()
	}
	switch f.value[0] {
	case '[':
		t := &form{kind: tuple}
		items, _ := rawjson.Items(f.value)
		for _, item := range items {
			t.parts = append(t.parts, readValue(item, depth+1))
		}
		return t
	case '{':
		o := &form{kind: object, closed: true}
		seen := map[string]bool{}
		rawjson.Each(f.value, func(name string, inner json.RawMessage) bool {
			if !seen[name] {
				o.fields = append(o.fields, field{name, false, readValue(inner, depth+1)})
			}
			seen[name] = true
			return true
		})
		return o
	}
	return f
}

// requoted writes a JSON string with quote.
func requoted(value json.RawMessage) string {
	s, _ := rawjson.Text(value)
	return quote(s)
}

func cutText(description string) string { return redact.Cut(description, longestToolText) }
