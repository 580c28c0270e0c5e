package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config/toml"
)

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
