package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// fastSchema is a schema that uses only common keywords: types, properties, required,
// enum. It recognizes valid arguments in one pass over the text, without decoding.
// Arguments that it does not recognize get the full check, so it must be strict where
// it is unsure. A nil fastSchema recognizes nothing.
type fastSchema struct {
	kinds    jsonKind
	values   []json.RawMessage // of enum
	members  map[string]*fastSchema
	required []string
	closed   bool // no other members
	items    *fastSchema
}

// jsonKind is a set of JSON types.
type jsonKind uint8

const (
	kindString jsonKind = 1 << iota
	kindNumber
	kindInteger
	kindBoolean
	kindNull
	kindObject
	kindArray
	kindAny jsonKind = 1<<7 - 1
)

var kinds = map[string]jsonKind{
	"string": kindString, "number": kindNumber | kindInteger, "integer": kindInteger,
	"boolean": kindBoolean, "null": kindNull, "object": kindObject, "array": kindArray,
}

// annotations are keywords that constrain nothing. format is one of them here.
var annotations = []string{
	"description", "title", "default", "examples", "format", "$schema", "$comment", "deprecated", "readOnly", "writeOnly",
}

// newFastSchema reads a schema; nil when it uses other keywords.
func newFastSchema(schema json.RawMessage) *fastSchema {
	if !rawjson.IsObject(schema) {
		return nil
	}
	g := &fastSchema{kinds: kindAny}
	plain := true
	rawjson.Each(schema, func(keyword string, value json.RawMessage) bool {
		plain = g.addKeyword(keyword, value)
		return plain
	})
	if !plain {
		return nil
	}
	return g
}

// addKeyword adds one keyword; false when it is not supported.
func (g *fastSchema) addKeyword(keyword string, value json.RawMessage) bool {
	ok := true
	switch keyword {
	case "type":
		g.kinds, ok = kindsOf(value)
	case "enum":
		g.values, ok = rawjson.Items(value)
	case "required":
		ok = json.Unmarshal(value, &g.required) == nil && len(g.required) < 64
	case "properties":
		g.members = map[string]*fastSchema{}
		rawjson.Each(value, func(name string, schema json.RawMessage) bool {
			g.members[name] = newFastSchema(schema) // nil: a full check if the member is given
			return true
		})
	case "additionalProperties":
		g.closed = string(value) == "false"
		ok = g.closed || string(value) == "true" || string(value) == "{}"
	case "items":
		g.items = newFastSchema(value)
		ok = g.items != nil
	default:
		ok = slices.Contains(annotations, keyword)
	}
	return ok
}

func kindsOf(value json.RawMessage) (jsonKind, bool) {
	if name, ok := rawjson.Text(value); ok {
		return kinds[name], kinds[name] != 0
	}
	items, ok := rawjson.Items(value)
	set := jsonKind(0)
	for _, item := range items {
		name, _ := rawjson.Text(item)
		ok = ok && kinds[name] != 0
		set |= kinds[name]
	}
	return set, ok && set != 0
}

// fits tells whether a JSON text certainly matches the schema.
func (g *fastSchema) fits(value json.RawMessage) bool {
	if g == nil {
		return false
	}
	value = bytes.TrimSpace(value)
	k := kindOf(value)
	if g.kinds&k == 0 || g.values != nil && !g.inEnum(value) {
		return false
	}
	switch k {
	case kindObject:
		return g.fitsObject(value)
	case kindArray:
		return g.fitsArray(value)
	default:
		return true
	}
}

func (g *fastSchema) fitsObject(object json.RawMessage) bool {
	fits, found := true, uint64(0)
	rawjson.Each(object, func(name string, value json.RawMessage) bool {
		member, known := g.members[name]
		switch {
		case known:
			fits = member.fits(value)
		case g.closed:
			fits = false
		}
		if i := slices.Index(g.required, name); i >= 0 {
			found |= 1 << i
		}
		return fits
	})
	return fits && found == 1<<len(g.required)-1
}

func (g *fastSchema) fitsArray(array json.RawMessage) bool {
	if g.items == nil {
		return true
	}
	items, ok := rawjson.Items(array)
	return ok && !slices.ContainsFunc(items, func(item json.RawMessage) bool { return !g.items.fits(item) })
}

func (g *fastSchema) inEnum(value json.RawMessage) bool {
	return slices.ContainsFunc(g.values, func(v json.RawMessage) bool { return bytes.Equal(v, value) })
}

// kindOf is a value's type by its first character. A number that may or may not be an
// integer has none.
func kindOf(value json.RawMessage) jsonKind {
	if len(value) == 0 {
		return 0
	}
	switch value[0] {
	case '"':
		return kindString
	case '{':
		return kindObject
	case '[':
		return kindArray
	case 't', 'f':
		return kindBoolean
	case 'n':
		return kindNull
	}
	if strings.ContainsAny(string(value), ".eE") {
		return kindNumber
	}
	return kindInteger
}
