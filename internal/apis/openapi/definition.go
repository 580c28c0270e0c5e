package openapi

import (
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// definition is the tool of an operation as in tools/list.
func (r *reader) definition(op *operation, schemas *schemas, base string) json.RawMessage {
	out := rawjson.AppendText([]byte(`{"name":`), op.name)
	if summary, ok := rawjson.GetText(op.raw.raw, "summary"); ok && summary != "" {
		out = rawjson.AppendText(append(out, `,"title":`...), strings.TrimSpace(summary))
	}
	out = rawjson.AppendText(append(out, `,"description":`...), op.description())
	out = append(out, `,"inputSchema":`...)
	out = appendInput(out, op, schemas)
	if output := r.output(op); output != nil {
		out = append(append(out, `,"outputSchema":`...), output...)
	}
	out = append(append(out, `,"annotations":`...), annotations(op.method)...)
	if op.base != "" {
		base = op.base
	}
	out = append(append(out, `,"_meta":{"`...), api.OperationKey+`":`...)
	out = rawjson.AppendText(out, op.method+" "+base+op.path)
	if len(op.tags) > 0 {
		list, _ := json.Marshal(op.tags) // texts can always be written
		out = append(append(out, `,"tags":`...), list...)
	}
	return append(out, `}}`...)
}

// annotations are the hints of a method, as HTTP defines it.
func annotations(method string) string {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY":
		return api.ReadOnly
	case "PUT":
		return `{"readOnlyHint":false,"idempotentHint":true}`
	case "DELETE":
		return `{"readOnlyHint":false,"idempotentHint":true,"destructiveHint":true}`
	}
	return api.Writes
}

// appendInput appends the schema of the arguments: parameters, and body as one argument.
// Its top level has nothing but properties, since not all models accept more there.
func appendInput(out []byte, op *operation, schemas *schemas) []byte {
	var refs []string
	var required []string
	out = append(out, `{"type":"object","properties":{`...)
	separate := func(name string) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(rawjson.AppendText(out, name), ':')
	}
	for _, p := range op.params {
		separate(p.argument)
		out = appendParameter(out, p, schemas, &refs)
		if p.required {
			required = append(required, p.argument)
		}
	}
	if op.body != nil {
		separate(argBody)
		out = appendBody(out, op.body, schemas, &refs)
		if op.body.required {
			required = append(required, argBody)
		}
	}
	for _, extra := range op.extra {
		separate(extra.name)
		out = append(out, extra.schema...)
	}
	out = append(out, '}')
	if len(required) > 0 {
		list, _ := json.Marshal(required) // texts can always be written
		out = append(append(out, `,"required":`...), list...)
	}
	out = append(out, `,"additionalProperties":false`...)
	if len(refs) > 0 {
		out = schemas.appendDefs(append(out, `,"$defs":`...), refs)
	}
	return append(out, '}')
}

func appendParameter(out []byte, p *parameter, schemas *schemas, refs *[]string) []byte {
	if p.schema.raw == nil {
		p.schema.raw = json.RawMessage(`{}`)
	}
	text := p.description
	if p.deprecated {
		text = strings.TrimSpace("Deprecated. " + text)
	}
	return appendDescribed(out, p.schema, text, schemas, refs)
}

// appendDescribed appends a schema with a description, unless it has one of its own.
func appendDescribed(out []byte, n node, text string, schemas *schemas, refs *[]string) []byte {
	start := len(out)
	out = schemas.convert(out, n, refs)
	written := out[start:]
	if text == "" || !rawjson.IsObject(written) || strings.HasPrefix(string(written), `{"$ref"`) {
		return out // a reference stays alone, since not all models accept more beside it
	}
	if _, ok := rawjson.Get(written, "description"); ok && !binary(n) {
		return out
	}
	return append(out[:start], rawjson.SetText(append(json.RawMessage(nil), written...), "description", api.Shorten(strings.TrimSpace(text)))...)
}

func appendBody(out []byte, b *body, schemas *schemas, refs *[]string) []byte {
	if media := b.types[0]; !isJSON(media) && media != formType && !isMultipart(media) && !strings.HasPrefix(media, "text/") {
		return append(out, fileSchema...)
	}
	if len(b.schemas) == 1 {
		return appendDescribed(out, b.schemas[0], b.description, schemas, refs)
	}
	out = append(out, `{"anyOf":[`...)
	for i, n := range b.schemas {
		if i > 0 {
			out = append(out, ',')
		}
		out = schemas.convert(out, n, refs)
	}
	return append(out, `]}`...)
}

// output is the outline of what a call returns; nil if it is not known or not an object or
// list.
func (r *reader) output(op *operation) json.RawMessage {
	schemas := r.results(op)
	if len(schemas) != 1 {
		return nil
	}
	switch r.docs.kind(schemas[0], kindDepth) {
	case "object":
		out := r.docs.outline(nil, schemas[0], outlineDepth)
		if kind, _ := rawjson.GetText(out, "type"); kind != "object" { // its parts say it
			out = rawjson.SetText(out, "type", "object")
		}
		return out
	case "array":
		out := r.docs.outline(nil, schemas[0], outlineDepth)
		return append(append([]byte(`{"type":"object","properties":{"items":`), out...), `,"next_page_token":{"type":"string"}}}`...)
	}
	return nil
}

// results are the different schemas of successful JSON answers.
func (r *reader) results(op *operation) (found []node) {
	responses, _ := rawjson.Get(op.raw.raw, "responses")
	rawjson.Each(responses, func(status string, raw json.RawMessage) bool {
		n, err := r.docs.follow(node{op.raw.doc, raw})
		if err != nil || !strings.HasPrefix(status, "2") {
			return true
		}
		schema, ok := rawjson.Get(n.raw, "schema") // of Swagger
		content, _ := rawjson.Get(n.raw, "content")
		rawjson.Each(content, func(media string, raw json.RawMessage) bool {
			if isJSON(media) {
				schema, ok = rawjson.Get(raw, "schema")
			}
			return !ok
		})
		if ok && (len(found) == 0 || string(found[0].raw) != string(schema)) {
			found = append(found, node{n.doc, schema})
		}
		return true
	})
	return found
}
