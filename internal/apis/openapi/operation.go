package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// operation is one operation of a document, with what is needed to call it.
type operation struct {
	name       string // of its tool
	id         string // operationId
	method     string
	path       string
	base       string // URL that the path is added to; empty: that of the document
	tags       []string
	deprecated bool
	params     []*parameter
	body       *body // nil: it has none

	raw  node
	item node // the path item

	pageParams []pageParameter
	pageNames  []string // those that may carry the next page
	pagesBody  bool     // they are members of the body, not of the query
	extra      []argument
}

// methods are the fields of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// reader reads a document.
type reader struct {
	docs    *documents
	root    node
	swagger bool // it is Swagger 2
	leftOut []string

	hidden    map[string]bool   // parameters that callers do not give, as "in name"
	fixedBase bool              // all operations are at the configured URL
	variables map[string]string // of servers
}

// operations lists the operations of the document that are selected, in its order.
func (r *reader) operations(settings api.Settings) (list []*operation) {
	paths, _ := r.docs.member(r.root, "paths")
	for m := rawjson.Walk(paths.raw); m.Next(); {
		path := string(m.Name())
		item, err := r.docs.follow(node{paths.doc, m.Value})
		if err != nil {
			r.leaveOut(path, err)
			continue
		}
		for _, op := range r.ofItem(item) {
			op.path = path
			if !settings.Selects(op.selectable()) {
				continue
			}
			if err := r.complete(op); err != nil {
				r.leaveOut(op.method+" "+path, err)
				continue
			}
			list = append(list, op)
		}
	}
	return list
}

// selectable is what selectors see of the operation.
func (op *operation) selectable() api.Operation {
	return api.Operation{Names: []string{op.id, plainName(op)}, Method: op.method, Path: op.path, Tags: op.tags}
}

func (r *reader) leaveOut(what string, err error) {
	r.leftOut = append(r.leftOut, fmt.Sprintf("%s: %v", what, err))
}

// ofItem returns the operations of a path item with what selects them.
func (r *reader) ofItem(item node) (list []*operation) {
	add := func(method string, raw json.RawMessage) {
		if !rawjson.IsObject(raw) {
			return
		}
		op := &operation{method: strings.ToUpper(method), raw: node{item.doc, raw}, item: item}
		op.id, _ = rawjson.GetText(raw, "operationId")
		op.deprecated = rawjson.GetBool(raw, "deprecated")
		tags, _ := rawjson.Get(raw, "tags")
		items, _ := rawjson.Items(tags)
		for _, tag := range items {
			text, _ := rawjson.Text(tag)
			op.tags = append(op.tags, text)
		}
		list = append(list, op)
	}
	for m := rawjson.Walk(item.raw); m.Next(); {
		switch name := string(m.Name()); {
		case slices.Contains(methods, name):
			add(name, m.Value)
		case name == "additionalOperations":
			rawjson.Each(m.Value, func(method string, raw json.RawMessage) bool { add(method, raw); return true })
		}
	}
	return list
}

// complete reads what a call needs.
func (r *reader) complete(op *operation) error {
	all, err := r.parameters(op)
	if err != nil {
		return err
	}
	if r.swagger {
		err = r.swaggerBody(op, all)
	} else {
		op.body, err = r.requestBody(op)
	}
	if err != nil {
		return err
	}
	for _, p := range all {
		if !r.isHidden(p) {
			op.params = append(op.params, p)
		}
	}
	op.base = r.serverOf(op)
	nameArguments(op)
	op.offerContentTypes()
	op.findPaging(r)
	return nil
}

// isHidden reports whether callers do not give the parameter: credentials, and headers
// that we set.
func (r *reader) isHidden(p *parameter) bool {
	if p.in == "body" || p.in == "formData" {
		return true
	}
	name := strings.ToLower(p.name)
	if p.in == "header" && slices.Contains([]string{"accept", "content-type", "authorization"}, name) {
		return true
	}
	return r.hidden[p.in+" "+name]
}

// description is the summary, the description and what callers must know besides.
func (op *operation) description() string {
	summary, _ := rawjson.GetText(op.raw.raw, "summary")
	text, _ := rawjson.GetText(op.raw.raw, "description")
	summary, text = strings.TrimSpace(summary), strings.TrimSpace(text)
	switch {
	case text == "" || text == summary:
		text = summary
	case summary != "" && !strings.HasPrefix(text, summary):
		text = strings.TrimSuffix(summary, ".") + ".\n\n" + text
	}
	text = cmp.Or(text, op.method+" "+op.path)
	if op.deprecated {
		text = "Deprecated. " + text
	}
	return api.Shorten(text)
}

// cleanName keeps letters, digits, dots and dashes of ASCII, and underscores for the rest.
func cleanName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, text), "_")
}

// nameOperations gives every operation a name: that of its operationId, else of method and
// path. Names that are too long, or that several operations would have, get a hash of
// method and path. So a name depends on no other operation, except that another one of the
// same name exists.
func nameOperations(list []*operation, budget int) {
	count := map[string]int{}
	for _, op := range list {
		op.name = plainName(op)
		count[op.name]++
	}
	for _, op := range list {
		if len(op.name) > budget || count[op.name] > 1 {
			op.name = api.HashedName(op.name, op.method+" "+op.path, budget)
		}
	}
}

func plainName(op *operation) string {
	text := op.id
	if cleanName(text) == "" {
		text = strings.ToLower(op.method) + "_" + op.path
	}
	name := strings.NewReplacer("-", "_", ".", "_").Replace(cleanName(text))
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	return name
}

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
