// Package toml reads and writes TOML, and edits its text in place: comments, order and
// everything else that an edit is not about stay as they are. It is the only package
// that uses the TOML library.
package toml

import (
	"bytes"

	"github.com/pelletier/go-toml/v2"
)

// The errors of Decode, with their positions.
type (
	DecodeError        = toml.DecodeError
	StrictMissingError = toml.StrictMissingError
)

// Decode reads text into v. Keys that v does not have are a StrictMissingError.
func Decode(text []byte, v any) error {
	return toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(v)
}

// Unmarshal reads text into v. Keys that v does not have are ignored.
func Unmarshal(text []byte, v any) error { return toml.Unmarshal(text, v) }

// Marshal returns v as TOML.
func Marshal(v any) ([]byte, error) { return toml.Marshal(v) }
