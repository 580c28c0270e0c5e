package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/yamltext"
)

// maxDocument is the largest document, also after its conversion from YAML.
const maxDocument = 64 << 20

// documents are a document and those it refers to. They stay raw JSON: operations are
// read one by one, and schemas when an operation needs them.
type documents struct {
	read   func(location string) ([]byte, error)
	loaded map[string]*document
}

// document is one document.
type document struct {
	location string // file or URL
	raw      json.RawMessage
	old      bool // schemas are those of Swagger 2 and OpenAPI 3.0, and not of JSON Schema 2020-12

	objects map[string]map[string]json.RawMessage // members of objects by pointer, for references
}

// node is a place in a document.
type node struct {
	doc *document
	raw json.RawMessage
}

// load returns the document at a location, which is read once.
func (d *documents) load(location string) (*document, error) {
	if known := d.loaded[location]; known != nil {
		return known, nil
	}
	text, err := d.read(location)
	if err != nil {
		return nil, err
	}
	raw, err := decode(text)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read %s", shown(location)).
			WithHint("it must be an OpenAPI 3 or Swagger 2 document in JSON or YAML")
	}
	doc := &document{location: location, raw: raw, objects: map[string]map[string]json.RawMessage{}}
	version, _ := rawjson.GetText(raw, "openapi")
	doc.old = version == "" || strings.HasPrefix(version, "3.0")
	if d.loaded == nil {
		d.loaded = map[string]*document{}
	}
	d.loaded[location] = doc
	return doc, nil
}

// shown is a location without what may be a secret in it.
func shown(location string) string { return api.Settings{Source: location}.Target() }

// decode returns JSON or YAML as JSON without blanks.
func decode(text []byte) (json.RawMessage, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if rawjson.First(text) != '{' {
		return yamltext.Decode(text, maxDocument)
	}
	var compact bytes.Buffer
	compact.Grow(len(text))
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	return compact.Bytes(), nil
}

// at returns what a JSON pointer names.
func (doc *document) at(pointer string) (json.RawMessage, bool) {
	if pointer == "" {
		return doc.raw, true
	}
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return nil, false
	}
	parent, token := pointer[:i], pointer[i+1:]
	members := doc.objects[parent]
	if members == nil {
		raw, ok := doc.at(parent)
		if !ok {
			return nil, false
		}
		if !rawjson.IsObject(raw) {
			return rawjson.Descend(raw, token)
		}
		members = map[string]json.RawMessage{}
		for m := rawjson.Walk(raw); m.Next(); {
			members[string(m.Name())] = m.Value
		}
		doc.objects[parent] = members
	}
	found, ok := members[rawjson.UnescapeToken(token)]
	return found, ok
}

// maxReferences is how many references may lead to each other.
const maxReferences = 32

// follow returns what a node refers to, and the node itself if it is no reference.
func (d *documents) follow(n node) (node, error) {
	for range maxReferences {
		ref, ok := reference(n.raw)
		if !ok {
			return n, nil
		}
		next, _, err := d.find(n.doc, ref)
		if err != nil {
			return node{}, err
		}
		n = next
	}
	return node{}, fmt.Errorf("more than %d references lead to each other", maxReferences)
}

// reference is the text of $ref.
func reference(raw json.RawMessage) (string, bool) {
	if rawjson.Lacks(raw, "$ref") {
		return "", false
	}
	return rawjson.GetText(raw, "$ref")
}

// find returns what a reference in a document names, and a key that is the same for all
// references to it.
func (d *documents) find(from *document, ref string) (n node, key string, err error) {
	place, fragment, _ := strings.Cut(ref, "#")
	doc := from
	if place != "" {
		location, err := from.beside(place)
		if err != nil {
			return node{}, "", err
		}
		if doc, err = d.load(location); err != nil {
			return node{}, "", err
		}
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	raw, ok := doc.at(fragment)
	if !ok {
		return node{}, "", fmt.Errorf("%s is not in the document", ref)
	}
	return node{doc, raw}, doc.location + "#" + fragment, nil
}

// beside resolves a reference to another document: a file in the folder of a file or
// below it, or a URL on the host of a URL.
func (doc *document) beside(place string) (string, error) {
	if !api.IsURL(doc.location) {
		if api.IsURL(place) || !filepath.IsLocal(filepath.FromSlash(place)) {
			return "", fmt.Errorf("%s: a file may refer only to files in its folder", place)
		}
		return filepath.Join(filepath.Dir(doc.location), filepath.FromSlash(place)), nil
	}
	base, err := url.Parse(doc.location)
	if err != nil {
		return "", fmt.Errorf("its url is not valid")
	}
	to, err := base.Parse(place)
	if err != nil || to.Host != base.Host || to.Scheme != base.Scheme {
		return "", fmt.Errorf("%s: a document may refer only to documents of its host", place)
	}
	return to.String(), nil
}

// member is a member of a node, through references.
func (d *documents) member(n node, key string) (node, bool) {
	raw, ok := rawjson.Get(n.raw, key)
	if !ok {
		return node{}, false
	}
	found, err := d.follow(node{n.doc, raw})
	return found, err == nil
}
