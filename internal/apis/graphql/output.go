package graphql

import (
	"encoding/json"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// output describes what the default selection returns. Nothing in it is required, since
// callers may select other fields.
func (s *service) output(op *operation) json.RawMessage {
	value := s.appendOutput(nil, op.field.Type, op.selection)
	if op.field.Type.Elem != nil || len(op.selection) == 0 {
		member := "result"
		if op.field.Type.Elem != nil {
			member = "items"
		}
		return append(append(rawjson.AppendKey([]byte(`{"type":"object","properties":{`), member), value...), `}}`...)
	}
	out := rawjson.SetText(value, "type", "object") // it is never null here
	if op.paged {
		properties, _ := rawjson.Get(out, "properties")
		out = rawjson.Set(out, "properties", rawjson.Set(properties, api.NextPageToken, json.RawMessage(`{"type":"string"}`)))
	}
	return out
}

func (s *service) appendOutput(out []byte, kind *ast.Type, sub []*selection) []byte {
	out = append(out, '{')
	if kind.Elem != nil {
		out = append(appendTypeName(out, "array", !kind.NonNull), `,"items":`...)
		return append(s.appendOutput(out, kind.Elem, sub), '}')
	}
	def := s.schema.Types[kind.NamedType]
	switch {
	case def.IsCompositeType():
		out = append(appendTypeName(out, "object", !kind.NonNull), `,"properties":{`...)
		out = append(s.appendMembers(out, sub, map[string]bool{}), '}')
	case def.Kind == ast.Enum:
		out = appendTypeName(out, "string", !kind.NonNull)
	case builtin[def.Name] != "":
		out = appendTypeName(out, builtin[def.Name], !kind.NonNull)
	}
	return append(out, '}')
}

// appendMembers appends the fields of a selection. Those of the types of a union are members
// of the same object.
func (s *service) appendMembers(out []byte, list []*selection, known map[string]bool) []byte {
	for _, selected := range list {
		switch {
		case selected.field == nil:
			out = s.appendMembers(out, selected.sub, known)
		case !known[selected.field.Name]:
			known[selected.field.Name] = true
			out = s.appendOutput(rawjson.AppendKey(out, selected.field.Name), selected.field.Type, selected.sub)
		}
	}
	return out
}
