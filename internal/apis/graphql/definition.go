package graphql

import (
	"encoding/json"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// definition is the tool of an operation as in tools/list.
func (s *service) definition(op *operation) json.RawMessage {
	out := rawjson.SetText(nil, "name", op.name)
	out = rawjson.SetText(out, "description", op.description())
	out = rawjson.Set(out, "inputSchema", s.input(op))
	out = rawjson.Set(out, "outputSchema", s.output(op))
	hints := api.Writes
	if op.kind == ast.Query {
		hints = api.ReadOnly
	}
	out = rawjson.Set(out, "annotations", json.RawMessage(hints))
	return s.withTarget(out, string(op.kind)+" "+op.field.Name)
}

// withTarget adds the request that a tool makes.
func (s *service) withTarget(definition json.RawMessage, request string) json.RawMessage {
	return rawjson.Set(definition, "_meta", rawjson.SetText(nil, api.OperationKey, request+" "+s.target))
}

// input is the schema of the arguments: those of the field, and those that choose fields
// and pages.
func (s *service) input(op *operation) json.RawMessage {
	in := &inputs{schema: s.schema, nulls: op.kind == ast.Mutation}
	in.defs.Write = in.appendObject
	out := []byte(`{"type":"object","properties":{`)
	var must []string
	for _, arg := range op.field.Arguments {
		out = rawjson.AppendKey(out, arg.Name)
		text := arg.Description
		if op.paged && arg.Name == "first" && arg.DefaultValue == nil {
			text = appendSentence(text, "20 if neither first nor last is given.")
		}
		out = in.appendValue(out, arg.Type, remark{deprecation(arg.Directives) + text, arg.DefaultValue})
		if required(arg.Type, arg.DefaultValue) {
			must = append(must, arg.Name)
		}
	}
	if name := op.fieldsArgument(); name != "" {
		out = rawjson.AppendKey(out, name)
		out = append(rawjson.AppendText(append(out, `{"type":"string","description":`...), fieldsHelp(op)), '}')
	}
	if op.paged {
		out = append(rawjson.AppendKey(out, api.PageToken), api.PageSchema...)
	}
	out = append(out, '}')
	if len(must) > 0 {
		list, _ := json.Marshal(must) // texts can always be written
		out = append(append(out, `,"required":`...), list...)
	}
	out = append(out, `,"additionalProperties":false`...)
	return append(in.defs.AppendTo(out), '}')
}

// maxShown is how much of the default selection is shown.
const maxShown = 300

func fieldsHelp(op *operation) string {
	shown := op.defaults
	if len(shown) > maxShown {
		shown = shown[:maxShown] + " …"
	}
	return "What to return, as a GraphQL selection on " + op.field.Type.Name() + ". Default: " + shown
}

func appendSentence(text, sentence string) string {
	if text == "" {
		return sentence
	}
	return text + " " + sentence
}
