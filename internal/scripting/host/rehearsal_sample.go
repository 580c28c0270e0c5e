package host

import (
	"encoding/json"
	"path"
	"slices"
)

// Sample makes a value that a JSON Schema allows: the one the schema names (const,
// default, an example, the first of an enum), otherwise the empty value of its type with
// every property present. A schema without a type gives {}.
func Sample(schema json.RawMessage) json.RawMessage {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil {
		s = map[string]any{}
	}
	raw, err := json.Marshal(sample(s, s, 0))
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// deepest bounds schemas that contain themselves.
const deepest = 8

func sample(root, s map[string]any, depth int) any {
	if named, ok := namedValue(s); ok {
		return named
	}
	if depth > deepest {
		return nil
	}
	if target, ok := resolve(root, s); ok {
		return sample(root, target, depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if choices, ok := s[key].([]any); ok && len(choices) > 0 {
			if first, ok := choices[0].(map[string]any); ok {
				return sample(root, first, depth+1)
			}
		}
	}
	switch typeOf(s) {
	case "object":
		return sampleObject(root, s, depth)
	case "array":
		return sampleArray(root, s, depth)
	case "string":
		return ""
	case "integer", "number":
		if low, ok := s["minimum"]; ok {
			return low
		}
		return 0
	case "boolean":
		return false
	default:
		return nil
	}
}

func namedValue(s map[string]any) (any, bool) {
	for _, key := range []string{"const", "default"} {
		if v, ok := s[key]; ok {
			return v, true
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return list[0], true
		}
	}
	return nil, false
}

// resolve follows a reference within the schema: "#/$defs/Issue".
func resolve(root, s map[string]any) (map[string]any, bool) {
	ref, ok := s["$ref"].(string)
	if !ok {
		return nil, false
	}
	for _, key := range []string{"$defs", "definitions"} {
		defs, _ := root[key].(map[string]any)
		if target, ok := defs[path.Base(ref)].(map[string]any); ok {
			return target, true
		}
	}
	return nil, false
}

// typeOf returns the schema's type, the first that is not null if there are several.
// Without a type, the other keywords decide.
func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		if i := slices.IndexFunc(t, func(v any) bool { return v != "null" }); i >= 0 {
			name, _ := t[i].(string)
			return name
		}
	}
	if _, ok := s["items"]; ok {
		return "array"
	}
	return "object"
}

func sampleObject(root, s map[string]any, depth int) any {
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if inner, ok := p.(map[string]any); ok {
			object[name] = sample(root, inner, depth+1)
		}
	}
	return object
}

// sampleArray has one element, so that a script that reads the first one finds it.
func sampleArray(root, s map[string]any, depth int) any {
	items, ok := s["items"].(map[string]any)
	if !ok || depth >= deepest {
		return []any{}
	}
	return []any{sample(root, items, depth+1)}
}
