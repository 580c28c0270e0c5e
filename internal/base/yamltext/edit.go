package yamltext

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// ErrUnsafe is returned instead of an edit that would change something else.
var ErrUnsafe = errors.New("its text cannot be edited without changing something else")

// Set puts a value at a path, whose parents are created.
func Set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	lines := linesOf(text)
	if root == nil {
		return insert(text, lines, len(lines), 0, nest(path, value))
	}
	node := root
	for i, key := range path {
		if node.Style&yaml.FlowStyle != 0 {
			return nil, ErrUnsafe
		}
		column := node.Column - 1
		if node.Kind == yaml.SequenceNode {
			return setItem(text, node, path[i:], value)
		}
		found, inner := child(node, key)
		if found == nil {
			at := blockEnd(lines, node.Content[len(node.Content)-2].Line-1, column)
			return insert(text, lines, at, column, nest(path[i:], value))
		}
		if i == len(path)-1 || len(inner.Content) == 0 {
			first := found.Line - 1
			lines = slices.Delete(lines, first, blockEnd(lines, first, column))
			return insert(text, lines, first, column, nest(path[i:], value))
		}
		node = inner
	}
	return text, nil
}

// setItem adds an item to a list of objects with names, or replaces the one of that
// name.
func setItem(text []byte, list *yaml.Node, path []string, value json.RawMessage) ([]byte, error) {
	if len(path) != 1 || item(list, path[0]) != nil {
		return nil, ErrUnsafe
	}
	lines := linesOf(text)
	last := list.Content[len(list.Content)-1]
	column := strings.LastIndexByte(lines[last.Line-1][:last.Column-1], '-')
	if column < 0 {
		return nil, ErrUnsafe
	}
	at := blockEnd(lines, last.Line-1, column)
	return insert(text, lines, at, column, slices.Concat([]byte("["), value, []byte("]")))
}

// child returns a key of a mapping and its value, or nil.
func child(node *yaml.Node, name string) (key, value *yaml.Node) {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// insert adds a value before a line, in a column.
func insert(text []byte, lines []string, at, column int, value json.RawMessage) ([]byte, error) {
	node, err := nodeOf(value)
	if err != nil {
		return nil, err
	}
	var encoded bytes.Buffer
	encoder := yaml.NewEncoder(&encoded)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(node), encoder.Close()); err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	if at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
		lines[at-1] += newline
	}
	var added []string
	for line := range strings.Lines(encoded.String()) {
		added = append(added, strings.Repeat(" ", column)+strings.TrimSuffix(line, "\n")+newline)
	}
	return []byte(strings.Join(slices.Concat(lines[:at], added, lines[at:]), "")), nil
}

// nodeOf returns JSON as a node, in its order and in block style.
func nodeOf(value json.RawMessage) (*yaml.Node, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(value, &node); err != nil {
		return nil, problem(err)
	}
	var block func(*yaml.Node)
	block = func(n *yaml.Node) {
		if n.Style &^= yaml.FlowStyle; n.Kind == yaml.ScalarNode {
			n.Style &^= yaml.DoubleQuotedStyle
		}
		for _, inner := range n.Content {
			block(inner)
		}
	}
	block(&node)
	return node.Content[0], nil
}

func linesOf(text []byte) []string { return slices.Collect(strings.Lines(string(text))) }

// blockEnd returns the line after the block that begins on a line, in a column: lines
// that are indented more. Blank lines and comments behind it do not belong to it.
func blockEnd(lines []string, first, column int) int {
	end := first + 1
	for i := end; i < len(lines); i++ {
		rest := strings.TrimLeft(lines[i], " ")
		indented := len(lines[i])-len(rest) > column
		item := len(lines[i])-len(rest) == column && strings.HasPrefix(rest, "- ") && !strings.HasPrefix(lines[first][column:], "-")
		switch {
		case strings.TrimSpace(rest) == "" || strings.HasPrefix(rest, "#") && !indented:
		case indented || item:
			end = i + 1
		default:
			return end
		}
	}
	return end
}

// Cut removes what is at a path.
func Cut(text []byte, path []string) ([]byte, error) {
	node, err := parse(text)
	if err != nil {
		return nil, err
	}
	var parent *yaml.Node
	for _, key := range path[:len(path)-1] {
		parent, node = child(node, key)
	}
	found := entry(node, path[len(path)-1])
	if found == nil {
		return text, nil
	}
	lines := linesOf(text)
	first, column := found.Line-1, found.Column-1
	if node.Kind == yaml.SequenceNode {
		column = strings.LastIndexByte(lines[first][:column], '-')
	}
	if node.Style&yaml.FlowStyle != 0 || column < 0 || strings.TrimSpace(lines[first][:column]) != "" {
		return nil, ErrUnsafe // it is on the line of its parent
	}
	if size(node) == 1 && parent != nil {
		if err := leaveEmpty(lines, parent, node.Kind); err != nil {
			return nil, err
		}
	}
	end := blockEnd(lines, first, column)
	return []byte(strings.Join(slices.Delete(lines, first, end), "")), nil
}

// entry returns the key of a mapping, or the item of a list, that has a name, or nil.
func entry(node *yaml.Node, name string) *yaml.Node {
	if node != nil && node.Kind == yaml.SequenceNode {
		return item(node, name)
	}
	key, _ := child(node, name)
	return key
}

// size returns how many entries a mapping or a list has.
func size(node *yaml.Node) int {
	if node.Kind == yaml.MappingNode {
		return len(node.Content) / 2
	}
	return len(node.Content)
}

// leaveEmpty writes an empty value behind a key whose value is about to be removed.
func leaveEmpty(lines []string, key *yaml.Node, kind yaml.Kind) error {
	line, start := lines[key.Line-1], key.Column-1
	size := strings.IndexByte(line[start:], ':')
	if size < 0 || strings.TrimSpace(line[start:start+size]) != key.Value {
		return ErrUnsafe
	}
	empty := " {}"
	if kind == yaml.SequenceNode {
		empty = " []"
	}
	lines[key.Line-1] = line[:start+size+1] + empty + line[start+size+1:]
	return nil
}

// item returns the item of a list that has a name.
func item(list *yaml.Node, name string) *yaml.Node {
	for _, entry := range list.Content {
		if _, value := child(entry, "name"); value != nil && value.Value == name {
			return entry
		}
	}
	return nil
}

// nest returns a value inside objects, one per key of a path.
func nest(path []string, value json.RawMessage) json.RawMessage {
	for _, key := range slices.Backward(path) {
		value = rawjson.Set(nil, key, value)
	}
	return value
}
