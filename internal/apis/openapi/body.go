package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// body is the body of a request.
type body struct {
	required    bool
	types       []string // media types that can be sent; the first is the default
	schemas     []node   // different ones, of all types
	description string

	styles map[string]style  // of properties of forms
	media  map[string]string // media types of properties of multipart forms
	files  map[string]bool   // properties of forms that are files
}

// requestBody reads the body of an operation; nil if it has none, or none that could say
// anything.
func (r *reader) requestBody(op *operation) (*body, error) {
	raw, ok := rawjson.Get(op.raw.raw, "requestBody")
	if !ok {
		return nil, nil
	}
	n, err := r.docs.follow(node{op.raw.doc, raw})
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	content, _ := rawjson.Get(n.raw, "content")
	b := &body{required: rawjson.GetBool(n.raw, "required")}
	b.description, _ = rawjson.GetText(n.raw, "description")
	found := map[string]node{}
	rawjson.Each(content, func(media string, raw json.RawMessage) bool {
		b.types = append(b.types, media)
		found[media] = node{n.doc, raw}
		return true
	})
	if len(b.types) == 0 {
		return nil, nil
	}
	hasFiles := slices.ContainsFunc(b.types, func(media string) bool {
		schema, _ := rawjson.Get(found[media].raw, "schema")
		return isMultipart(media) && len(r.fileProperties(node{n.doc, schema})) > 0
	})
	if b.types = sendable(b.types, hasFiles); len(b.types) == 0 {
		return nil, fmt.Errorf("its body has no media type that can be sent")
	}
	for _, media := range b.types {
		schema, _ := rawjson.Get(found[media].raw, "schema")
		b.addSchema(node{n.doc, schema})
	}
	if r.saysNothing(b.schemas[0]) {
		return nil, nil
	}
	b.files = r.fileProperties(b.schemas[0])
	b.readEncoding(found[b.types[0]])
	return b, nil
}

func (b *body) addSchema(n node) {
	if n.raw == nil {
		n.raw = json.RawMessage(`{}`)
	}
	if !slices.ContainsFunc(b.schemas, func(other node) bool { return string(other.raw) == string(n.raw) }) {
		b.schemas = append(b.schemas, n)
	}
}

// readEncoding reads how the properties of a form are written.
func (b *body) readEncoding(media node) {
	encoding, _ := rawjson.Get(media.raw, "encoding")
	rawjson.Each(encoding, func(property string, raw json.RawMessage) bool {
		if b.styles == nil {
			b.styles, b.media = map[string]style{}, map[string]string{}
		}
		if rawjson.Lacks(raw, "contentType") || !rawjson.Lacks(raw, "style") {
			b.styles[property] = readStyle(raw, "query")
		}
		if text, ok := rawjson.GetText(raw, "contentType"); ok {
			b.media[property], _, _ = strings.Cut(text, ",")
		}
		return true
	})
}

// sendable returns the media types that can be sent, the best first. Files cannot be sent
// in the other kind of form.
func sendable(types []string, hasFiles bool) []string {
	kept := slices.DeleteFunc(slices.Clone(types), func(media string) bool { return preference(media, hasFiles) == 0 })
	slices.SortStableFunc(kept, func(a, b string) int { return preference(b, hasFiles) - preference(a, hasFiles) })
	return kept
}

// preference is higher for media types that are better to send, and 0 for those that
// cannot be sent.
func preference(media string, hasFiles bool) int {
	switch media := mediaType(media); {
	case media == "application/json":
		return 9
	case media == "application/merge-patch+json":
		return 8
	case strings.HasSuffix(media, "+json"), strings.HasSuffix(media, "/json"):
		return 7
	case media == "*/*", media == "application/*":
		return 6
	case isMultipart(media) && hasFiles:
		return 5
	case media == formType:
		return 4
	case isMultipart(media):
		return 3
	case strings.HasPrefix(media, "text/"):
		return 2
	case strings.HasSuffix(media, "yaml"), strings.HasSuffix(media, "cbor"), strings.HasSuffix(media, "xml"), strings.Contains(media, "protobuf"):
		return 0
	}
	return 1 // a file
}

const formType = "application/x-www-form-urlencoded"

func isMultipart(media string) bool { return strings.HasPrefix(mediaType(media), "multipart/") }

func isJSON(media string) bool {
	media = mediaType(media)
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json") || media == "*/*" || media == "application/*"
}

// mediaType is a media type without its parameters, in lower case.
func mediaType(text string) string {
	text, _, _ = strings.Cut(text, ";")
	return strings.ToLower(strings.TrimSpace(text))
}

// saysNothing reports whether a schema allows only an empty object.
func (r *reader) saysNothing(n node) bool {
	n, err := r.docs.follow(n)
	if err != nil {
		return false
	}
	var found [5]json.RawMessage
	rawjson.Pick(n.raw, []string{"properties", "additionalProperties", "allOf", "oneOf", "anyOf"}, found[:])
	if found[2] != nil || found[3] != nil || found[4] != nil || found[0] != nil && !rawjson.IsEmptyObject(found[0]) {
		return false
	}
	return string(found[1]) == "false" || found[0] != nil && found[1] == nil
}

// fileProperties are the properties of a form that are files, or lists of them.
func (r *reader) fileProperties(n node) map[string]bool {
	n, err := r.docs.follow(n)
	if err != nil {
		return nil
	}
	files := map[string]bool{}
	properties, _ := rawjson.Get(n.raw, "properties")
	rawjson.Each(properties, func(name string, raw json.RawMessage) bool {
		property, err := r.docs.follow(node{n.doc, raw})
		if items, ok := r.docs.member(property, "items"); ok {
			property = items
		}
		if err == nil && binary(property) {
			files[name] = true
		}
		return true
	})
	return files
}

// offerContentTypes adds the argument that chooses the media type of the body, if there are
// several.
func (op *operation) offerContentTypes() {
	if op.body == nil || len(op.body.types) < 2 {
		return
	}
	list, _ := json.Marshal(op.body.types) // texts can always be written
	op.extra = append(op.extra, argument{argContentType, `{"type":"string","enum":` + string(list) + `,"description":"Media type of the body."}`})
}

// swaggerBody makes a body of Swagger's parameters for it.
func (r *reader) swaggerBody(op *operation, all []*parameter) error {
	consumes := textsOf(op.raw, "consumes")
	if consumes == nil {
		consumes = textsOf(r.root, "consumes")
	}
	for _, p := range all {
		if p.in != "body" {
			continue
		}
		op.body = &body{required: p.required, types: sendable(consumes, false), description: p.description}
		if len(op.body.types) == 0 || mediaType(op.body.types[0]) == "*/*" {
			op.body.types = []string{"application/json"}
		}
		op.body.addSchema(p.schema)
		if r.saysNothing(p.schema) {
			op.body = nil
		}
		return nil
	}
	return r.swaggerForm(op, all, consumes)
}

// swaggerForm makes a body of the formData parameters.
func (r *reader) swaggerForm(op *operation, all []*parameter, consumes []string) error {
	b := &body{styles: map[string]style{}, media: map[string]string{}, files: map[string]bool{}}
	properties, required := json.RawMessage(`{}`), []string(nil)
	for _, p := range all {
		if p.in != "formData" {
			continue
		}
		schema := p.schema.raw
		if p.description != "" {
			schema = rawjson.SetText(schema, "description", p.description)
		}
		properties = rawjson.Set(properties, p.name, schema)
		if p.required {
			required = append(required, p.name)
		}
		b.styles[p.name] = p.style
		if binary(p.schema) {
			b.files[p.name] = true
		}
	}
	if rawjson.IsEmptyObject(properties) {
		return nil
	}
	b.types, b.required = formTypes(consumes, len(b.files) > 0), len(required) > 0
	schema := rawjson.Set(json.RawMessage(`{"type":"object"}`), "properties", properties)
	if b.required {
		list, _ := json.Marshal(required) // texts can always be written
		schema = rawjson.Set(schema, "required", list)
	}
	b.addSchema(node{op.raw.doc, schema})
	op.body = b
	return nil
}

// formTypes are the media types in which a form can be sent.
func formTypes(consumes []string, hasFiles bool) []string {
	types := sendable(slices.DeleteFunc(consumes, isJSON), hasFiles)
	switch {
	case len(types) > 0:
		return types
	case hasFiles:
		return []string{"multipart/form-data"}
	}
	return []string{formType}
}

// textsOf reads a list of texts.
func textsOf(n node, key string) (texts []string) {
	raw, _ := rawjson.Get(n.raw, key)
	items, _ := rawjson.Items(raw)
	for _, item := range items {
		if text, ok := rawjson.Text(item); ok {
			texts = append(texts, text)
		}
	}
	return texts
}
