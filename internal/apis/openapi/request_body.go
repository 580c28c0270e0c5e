package openapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
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
	if media == "" {
		media = "application/octet-stream"
	}
	return &file{name: "file", media: media, open: content(decoded)}, nil
}
