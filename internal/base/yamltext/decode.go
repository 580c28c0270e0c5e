// Package yamltext reads YAML as JSON and edits its text in place. It edits block mappings
// and the lists in them, as people and programs write configuration.
package yamltext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// parse returns the document's mapping, or nil if the document is empty.
func parse(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, problem(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has several documents")
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: it is not a mapping", root.Line)
	}
	return root, nil
}

func problem(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
}

// Decode returns a document as JSON of up to limit bytes, in its order; an empty one is an
// empty object. Errors name the line.
func Decode(text []byte, limit int) (raw json.RawMessage, err error) {
	defer func() { // some documents that are no configuration make the library panic
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
	}()
	root, err := parse(text)
	if err != nil || root == nil {
		return json.RawMessage("{}"), err
	}
	return decoder{min(limit, minGrowth+maxGrowth*len(text))}.appendNode(nil, root, 0)
}

// Aliases repeat what is written once: how many times larger than its text a document may
// become by them, and how large a small one.
const (
	maxGrowth = 16
	minGrowth = 1 << 20 // bytes
)

// maxDepth bounds how deep a document is read, also through aliases.
const maxDepth = 100

// decoder writes nodes as JSON.
type decoder struct{ limit int }

// appendNode appends a node as JSON, in its order.
func (d decoder) appendNode(out []byte, node *yaml.Node, depth int) ([]byte, error) {
	var err error
	switch {
	case depth > maxDepth || len(out) > d.limit:
		return nil, fmt.Errorf("line %d: it is too large", node.Line)
	case node.Kind == yaml.AliasNode:
		return d.appendNode(out, node.Alias, depth+1)
	case node.Kind == yaml.SequenceNode:
		out = append(out, '[')
		for i, item := range node.Content {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = d.appendNode(out, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case node.Kind == yaml.MappingNode:
		return d.appendMapping(out, node, depth)
	}
	if raw := plainScalar(node); raw != nil {
		return append(out, raw...), nil
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, problem(err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", node.Line, err)
	}
	return append(out, raw...), nil
}

func (d decoder) appendMapping(out []byte, node *yaml.Node, depth int) (_ []byte, err error) {
	out = append(out, '{')
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return nil, fmt.Errorf("line %d: keys other than text are not supported", key.Line)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendText(out, key.Value), ':')
		if out, err = d.appendNode(out, node.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// plainScalar returns texts, and numbers as they are written: a version such as 1.10 and a
// date are not numbers and times to everybody. It is nil for others.
func plainScalar(node *yaml.Node) []byte {
	switch node.Tag {
	case "!!str", "!!timestamp":
		return rawjson.AppendText(nil, node.Value)
	case "!!int", "!!float":
		if raw := []byte(node.Value); json.Valid(raw) {
			return raw
		}
	}
	return nil
}
