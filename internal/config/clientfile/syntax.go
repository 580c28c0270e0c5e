package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/yamltext"
	"github.com/luanette/luanette/internal/config/toml"
)

// Syntax is the language of a file.
type Syntax string

// The syntaxes.
const (
	JSON Syntax = "json" // with comments and trailing commas, if the file has them
	TOML Syntax = "toml"
	YAML Syntax = "yaml"
)

// SyntaxOf returns the syntax of a file by its name.
func SyntaxOf(path string) Syntax {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		return TOML
	case ".yaml", ".yml":
		return YAML
	default:
		return JSON
	}
}

// editor reads one syntax and edits its text in place.
type editor interface {
	// decode returns the document as JSON; an empty one is an empty object. Its error
	// names the line.
	decode(text []byte) (json.RawMessage, error)
	// set puts a value at a path, whose parents are created.
	set(text []byte, path []string, value json.RawMessage) ([]byte, error)
	// cut removes what is at a path.
	cut(text []byte, path []string) ([]byte, error)
}

func (s Syntax) editor() editor {
	switch s {
	case TOML:
		return tomlText{}
	case YAML:
		return yamlText{}
	default:
		return jsonc{}
	}
}

// errUnsafe is returned instead of an edit that would change something else.
var errUnsafe = errors.New("its text cannot be edited without changing something else")

// Decode returns a document as JSON.
func (s Syntax) Decode(text []byte) (json.RawMessage, error) { return s.editor().decode(text) }

// Set puts a value at a path and leaves all other text as it is.
func (s Syntax) Set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	var wanted any
	if err := unmarshal(value, &wanted); err != nil {
		return nil, err
	}
	return s.edited(text, func(e editor) ([]byte, error) { return e.set(text, path, value) },
		func(was, is any) bool { return reflect.DeepEqual(put(was, path, wanted), is) })
}

// Put is Set for an entry of a client: if entries are listed, in a list in which it replaces
// the one of its name.
func (s Syntax) Put(text []byte, path []string, entry json.RawMessage, listed bool) ([]byte, error) {
	if !listed {
		return s.Set(text, path, entry)
	}
	text, err := s.Cut(text, path)
	if err != nil {
		return nil, err
	}
	document, err := s.Decode(text)
	if err != nil {
		return nil, err
	}
	list := path[:len(path)-1]
	if items, isList := rawjson.Items(listAt(document, list)); isList && len(items) > 0 {
		return s.Set(text, path, entry)
	}
	return s.Set(text, list, slices.Concat([]byte("["), entry, []byte("]")))
}

// Cut removes what is at a path and leaves all other text as it is. A path that does
// not exist is no error.
func (s Syntax) Cut(text []byte, path []string) ([]byte, error) {
	return s.edited(text, func(e editor) ([]byte, error) { return e.cut(text, path) },
		func(was, is any) bool { return reflect.DeepEqual(pruned(without(was, path), path), pruned(is, path)) })
}

// edited edits a text and refuses the result unless right says that the document
// changed as it should.
func (s Syntax) edited(text []byte, edit func(editor) ([]byte, error), right func(was, is any) bool) ([]byte, error) {
	was, err := s.value(text)
	if err != nil {
		return nil, err
	}
	changed, err := edit(s.editor())
	if err != nil {
		return nil, err
	}
	is, err := s.value(changed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsafe, err)
	}
	if !right(was, is) {
		return nil, errUnsafe
	}
	return changed, nil
}

// value returns a document as a Go value.
func (s Syntax) value(text []byte) (value any, err error) {
	document, err := s.Decode(text)
	if err != nil {
		return nil, err
	}
	return value, unmarshal(document, &value)
}

func unmarshal(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// put returns the document with a value at a path.
func put(document any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if items, isList := document.([]any); isList && len(path) == 1 { // of objects with names
		return append(items, value)
	}
	object, ok := document.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object[path[0]] = put(object[path[0]], path[1:], value)
	return object
}

// without returns the document without what is at a path.
func without(document any, path []string) any {
	key := path[0]
	switch parent := document.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(parent, key)
		} else if inner, ok := parent[key]; ok {
			parent[key] = without(inner, path[1:])
		}
	case []any: // of objects with names
		if len(path) == 1 {
			return slices.DeleteFunc(parent, func(item any) bool {
				object, _ := item.(map[string]any)
				return object["name"] == key
			})
		}
	}
	return document
}

// pruned returns the document without empty objects on a path: a table of TOML that
// has no header of its own vanishes with its last member.
func pruned(document any, path []string) any {
	object, ok := document.(map[string]any)
	if !ok || len(path) < 2 {
		return document
	}
	inner, ok := pruned(object[path[0]], path[1:]).(map[string]any)
	if ok && len(inner) == 0 {
		delete(object, path[0])
	}
	return object
}

// tomlText edits tables that have headers of their own, as Codex writes them.
type tomlText struct{}

func (tomlText) decode(text []byte) (json.RawMessage, error) {
	document := map[string]any{}
	if err := toml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &document); err != nil {
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			line, _ := bad.Position()
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		return nil, err
	}
	return json.Marshal(document)
}

func (t tomlText) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	if !rawjson.IsObject(value) {
		return nil, errUnsafe
	}
	text, err := t.cut(text, path)
	if err != nil {
		return nil, err
	}
	mark, text := splitMark(text)
	return append(mark, toml.AppendObject(text, path, value)...), nil
}

func (tomlText) cut(text []byte, path []string) ([]byte, error) {
	mark, text := splitMark(text)
	cut, err := toml.CutTable(text, path...)
	switch {
	case errors.Is(err, toml.ErrNoHeader):
		return append(mark, text...), nil // Syntax.verify notices if the table exists
	case err != nil:
		return nil, err
	}
	return append(mark, cut...), nil
}

// splitMark separates a byte order mark from a text.
func splitMark(text []byte) (mark, rest []byte) {
	if rest, marked := bytes.CutPrefix(text, []byte("\ufeff")); marked {
		return []byte("\ufeff"), rest
	}
	return nil, text
}

// yamlText edits the files of Goose and Continue.
type yamlText struct{}

func (yamlText) decode(text []byte) (json.RawMessage, error) { return yamltext.Decode(text, 1<<20) }

func (yamlText) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	return orUnsafe(yamltext.Set(text, path, value))
}

func (yamlText) cut(text []byte, path []string) ([]byte, error) {
	return orUnsafe(yamltext.Cut(text, path))
}

func orUnsafe(text []byte, err error) ([]byte, error) {
	if errors.Is(err, yamltext.ErrUnsafe) {
		return nil, errUnsafe
	}
	return text, err
}
