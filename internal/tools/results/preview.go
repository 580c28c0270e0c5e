package results

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

// Limits of a preview.
const (
	longestShape = 1500
	shownText    = 100
	shownItems   = 3
	shownFields  = 12
	shownDepth   = 4
	shownWhole   = 600 // of a value that is one text
)

// Preview is the beginning of a value: the first items of every list and the first
// characters of every text.
func Preview(value json.RawMessage) string {
	if text, ok := rawjson.Text(value); ok {
		return redact.Cut(text, shownWhole)
	}
	var b strings.Builder
	preview(&b, value, 0)
	return redact.Cut(b.String(), 2*longestShape)
}

func preview(b *strings.Builder, value json.RawMessage, depth int) {
	if text, ok := rawjson.Text(value); ok {
		fmt.Fprintf(b, "%q", redact.Cut(text, shownText))
		return
	}
	items, isList := rawjson.Items(value)
	switch {
	case isList && depth >= shownDepth:
		fmt.Fprintf(b, "[… %d items]", len(items))
	case isList:
		b.WriteByte('[')
		for i, item := range items[:min(len(items), shownItems)] {
			if i > 0 {
				b.WriteString(", ")
			}
			preview(b, item, depth+1)
		}
		if more := len(items) - shownItems; more > 0 {
			fmt.Fprintf(b, ", … %d more", more)
		}
		b.WriteByte(']')
	case rawjson.IsObject(value):
		previewObject(b, value, depth)
	default:
		b.WriteString(redact.Cut(string(value), shownText))
	}
}

func previewObject(b *strings.Builder, object json.RawMessage, depth int) {
	if depth >= shownDepth {
		b.WriteString("{…}")
		return
	}
	n := 0
	b.WriteByte('{')
	rawjson.Each(object, func(name string, value json.RawMessage) bool {
		n++
		switch {
		case n > shownFields:
		default:
			if n > 1 {
				b.WriteString(", ")
			}
			b.WriteString(redact.Cut(name, shownText) + ": ")
			preview(b, value, depth+1)
		}
		return true
	})
	if more := n - shownFields; more > 0 {
		fmt.Fprintf(b, ", … %d more", more)
	}
	b.WriteByte('}')
}
