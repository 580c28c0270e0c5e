// Package params sets the parameters of calls and scripts as span attributes: one
// attribute each, flattened, limited, and without values of keys that look secret.
package params

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
)

// Limits for one span.
const (
	most         = 32       // attributes
	deepest      = 4        // levels of nested objects
	longestKey   = 128      // of an attribute, its prefix included
	longestValue = 200      // of a string or of JSON
	longestAll   = 64 << 10 // longer parameters are not parsed
	longestRaw   = 2 << 10  // longer parameters are shortened at once
)

// rawPrefix begins the keys of attributes that Expand replaces.
const rawPrefix = "raw "

// Deferred returns a JSON object for a span that is seldom read: as one attribute, which
// has secrets in it and must not be shown. Expand makes of it, where spans are shown and
// exported, the object as text and what Attributes returns. A long object is replaced at
// once, so that it does not stay in memory.
func Deferred(prefix string, object json.RawMessage) []attribute.KeyValue {
	raw := []attribute.KeyValue{attribute.String(rawPrefix+prefix, string(object))}
	if len(object) > longestRaw {
		return Expand(raw)
	}
	return raw
}

// Expand replaces the attributes of Deferred. It returns list itself if there are none.
func Expand(list []attribute.KeyValue) []attribute.KeyValue {
	isRaw := func(a attribute.KeyValue) bool { return strings.HasPrefix(string(a.Key), rawPrefix) }
	if !slices.ContainsFunc(list, isRaw) {
		return list
	}
	expanded := slices.DeleteFunc(slices.Clone(list), isRaw)
	for _, a := range list {
		if prefix, raw := strings.CutPrefix(string(a.Key), rawPrefix); raw {
			object := json.RawMessage(a.Value.AsString())
			expanded = append(append(expanded, attribute.String(prefix, redact.JSON(object))), Attributes(prefix, object)...)
		}
	}
	return expanded
}

// Attributes returns the members of a JSON object as attributes "prefix.name", and
// those of nested objects as "prefix.name.inner". Scalars keep their type, lists are
// JSON. "prefix.omitted" counts the attributes that were left out.
func Attributes(prefix string, object json.RawMessage) []attribute.KeyValue {
	if !rawjson.IsObject(object) {
		return nil
	}
	if len(object) > longestAll {
		return []attribute.KeyValue{attribute.String(prefix, fmt.Sprintf("(%d bytes)", len(object)))}
	}
	f := flattening{}
	f.object(prefix, object, 0)
	if f.omitted > 0 {
		f.all = append(f.all, attribute.Int(prefix+".omitted", f.omitted))
	}
	return f.all
}

type flattening struct {
	all     []attribute.KeyValue
	omitted int
}

func (f *flattening) object(prefix string, object json.RawMessage, depth int) {
	rawjson.Each(object, func(name string, value json.RawMessage) bool {
		key := prefix + "." + name
		switch {
		case len(f.all) == most || len(key) > longestKey:
			f.omitted++
		case rawjson.IsObject(value) && depth < deepest && !redact.Secret(name):
			f.object(key, value, depth+1)
		default:
			f.all = append(f.all, one(key, name, value))
		}
		return true
	})
}

// one keeps the type of scalars; other values are JSON. Numbers and booleans are never
// secret: max_tokens is a number.
func one(key, name string, raw json.RawMessage) attribute.KeyValue {
	switch string(raw) {
	case "true", "false":
		return attribute.Bool(key, raw[0] == 't')
	case "null":
		return attribute.String(key, "null")
	}
	if number, ok := rawjson.Number(raw); ok {
		if whole, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return attribute.Int64(key, whole)
		}
		return attribute.Float64(key, number)
	}
	if redact.Secret(name) {
		return attribute.String(key, redact.Hidden)
	}
	if text, ok := rawjson.Text(raw); ok {
		return attribute.String(key, shorten(redact.Text(text)))
	}
	return attribute.String(key, shorten(redact.JSON(raw)))
}

func shorten(text string) string {
	if len(text) <= longestValue {
		return text
	}
	return fmt.Sprintf("%s (%d bytes)", redact.Cut(text, longestValue), len(text))
}
