package openapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"os"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
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

// addBody adds the body to a request.
func (b *requestBuilder) addBody(ctx context.Context, r *httpcall.Request, files api.Files) error {
	spec := b.op.body
	if spec == nil {
		return nil
	}
	value, given := b.args[argBody]
	if !given {
		if spec.required {
			return fault.New(fault.InvalidParams, "the argument %s is missing", argBody)
		}
		return nil
	}
	media := spec.types[0]
	if chosen, ok := rawjson.Text(b.args[argContentType]); ok && slices.Contains(spec.types, chosen) {
		media = chosen
	}
	if strings.Contains(media, "*") {
		media = "application/json"
	}
	b.header.Set("Content-Type", media)
	switch {
	case isJSON(media):
		r.Body = content(value)
	case mediaType(media) == formType:
		r.Body = content([]byte(encodePairs(spec.form(value))))
	case isMultipart(media):
		return b.addMultipart(ctx, r, value, files)
	case strings.HasPrefix(media, "text/"):
		r.Body = content([]byte(scalar(value)))
	default:
		f, err := findFile(ctx, scalar(value), files)
		if err != nil {
			return err
		}
		r.Body = f.open
	}
	return nil
}

// content is a body in memory.
func content(text []byte) func() (io.ReadCloser, int64, error) {
	return func() (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(text)), int64(len(text)), nil
	}
}

// form writes the properties of a body as fields. What nests and has no style is written
// with brackets, as most services read it.
func (b *body) form(value json.RawMessage) (list []pair) {
	rawjson.Each(value, func(name string, property json.RawMessage) bool {
		written, ok := b.styles[name]
		if !ok {
			written = style{name: "form", explode: true}
			if items, isList := rawjson.Items(property); rawjson.IsObject(property) || isList && slices.ContainsFunc(items, rawjson.IsObject) {
				written.name = "deepObject"
			}
		}
		list = append(list, written.pairs(name, property)...)
		return true
	})
	return list
}

// part is a part of a multipart body.
type part struct {
	name  string
	media string
	file  *file // nil: the text
	text  []byte
}

// addMultipart makes a multipart body. Files are read while it is sent.
func (b *requestBuilder) addMultipart(ctx context.Context, r *httpcall.Request, value json.RawMessage, files api.Files) (err error) {
	var parts []part
	rawjson.Each(value, func(name string, property json.RawMessage) bool {
		items, isList := rawjson.Items(property)
		if !isList {
			items = []json.RawMessage{property}
		}
		for _, item := range items {
			p := part{name: name, media: b.op.body.media[name], text: []byte(scalar(item))}
			if b.op.body.files[name] {
				if p.file, err = findFile(ctx, scalar(item), files); err != nil {
					return false
				}
			} else if p.media == "" && !isScalar(item) {
				p.media = "application/json"
			}
			parts = append(parts, p)
		}
		return true
	})
	if err != nil {
		return err
	}
	boundary := strings.ToLower(rand.Text())
	kind, _, _ := strings.Cut(b.header.Get("Content-Type"), ";")
	b.header.Set("Content-Type", kind+"; boundary="+boundary)
	r.Body = func() (io.ReadCloser, int64, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(writeParts(writer, boundary, parts)) }() // ends when the reader is closed
		return reader, -1, nil
	}
	return nil
}

func isScalar(value json.RawMessage) bool { return value[0] != '{' && value[0] != '[' }

func writeParts(w io.Writer, boundary string, parts []part) error {
	form := multipart.NewWriter(w)
	if err := form.SetBoundary(boundary); err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.write(form); err != nil {
			return err
		}
	}
	return form.Close()
}

func (p part) write(form *multipart.Writer) error {
	header := textproto.MIMEHeader{}
	disposition := `form-data; name="` + escapeQuotes.Replace(p.name) + `"`
	media := p.media
	if p.file != nil {
		disposition += `; filename="` + escapeQuotes.Replace(p.file.name) + `"`
		if media == "" || strings.Contains(media, "*") {
			media = p.file.media
		}
	}
	header.Set("Content-Disposition", disposition)
	if media != "" {
		header.Set("Content-Type", media)
	}
	w, err := form.CreatePart(header)
	if err != nil {
		return err
	}
	if p.file == nil {
		_, err = w.Write(p.text)
		return err
	}
	content, _, err := p.file.open()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(w, content)
	return err
}

var escapeQuotes = strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", "", "\n", "")

// file is a file that a caller sends.
type file struct {
	name  string
	media string
	open  func() (io.ReadCloser, int64, error)
}

// maxDataURI is the largest file that a caller can give in the arguments themselves.
const maxDataURI = 10 << 20

// findFile returns the file that a caller names: stored content, or a data: URI. Callers
// cannot name files of this machine.
func findFile(ctx context.Context, name string, files api.Files) (*file, error) {
	if rest, ok := strings.CutPrefix(name, "data:"); ok {
		return dataFile(rest)
	}
	if files == nil {
		return nil, fault.New(fault.Unavailable, "there are no stored files here").WithHint("give the file as a data: URI")
	}
	found, err := files.FindFile(ctx, name)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "find file").
			WithHint("give the hash or id of stored content, such as cas:HASH, or a data: URI")
	}
	return &file{name: found.Hash.Short(), media: found.MIME, open: func() (io.ReadCloser, int64, error) {
		f, err := os.Open(found.Path)
		if err != nil {
			return nil, 0, fault.Wrap(fault.Internal, err, "open stored content")
		}
		return f, found.Size, nil
	}}, nil
}

func dataFile(rest string) (*file, error) {
	head, data, ok := strings.Cut(rest, ",")
	media, encoded := strings.CutSuffix(head, ";base64")
	if !ok || !encoded || len(data) > maxDataURI {
		return nil, fault.New(fault.InvalidParams, "the file is no data: URI with base64 of at most %d bytes", maxDataURI).
			WithHint("write data:MEDIA/TYPE;base64,DATA, or store the file and give its hash")
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read data: URI")
	}
	media = cmp.Or(media, "application/octet-stream")
	return &file{name: "file", media: media, open: content(decoded)}, nil
}
