package clientfile

import (
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/yamltext"
)

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
