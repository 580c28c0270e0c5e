// Package toml reads and writes TOML, and edits its text in place: comments, order and
// everything else that an edit is not about stay as they are. It is the only package
// that uses the TOML library.
package toml

import (
	"bytes"
	"encoding/json"

	"github.com/pelletier/go-toml/v2"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
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

// Marshal returns v as TOML. A type can write its value itself with a method MarshalTOML.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	err := toml.NewEncoder(&out).EnableMarshalerInterface().Encode(v)
	return out.Bytes(), err
}

// encodeTable appends a table with its header. Objects in it become tables below it,
// nulls are left out.
func encodeTable(out []byte, path []string, object json.RawMessage) []byte {
	out = append(out, "\n["...)
	for i, key := range path {
		if i > 0 {
			out = append(out, '.')
		}
		out = appendKey(out, key)
	}
	out = append(out, "]\n"...)
	rawjson.Each(object, func(key string, value json.RawMessage) bool {
		if !rawjson.IsObject(value) && !rawjson.IsNull(value) {
			out = append(appendKey(out, key), " = "...)
			out = append(appendValue(out, value), '\n')
		}
		return true
	})
	rawjson.Each(object, func(key string, value json.RawMessage) bool {
		if rawjson.IsObject(value) {
			out = encodeTable(out, append(path[:len(path):len(path)], key), value)
		}
		return true
	})
	return out
}

var bareKey = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

func appendKey(out []byte, key string) []byte {
	if bareKey().MatchString(key) {
		return append(out, key...)
	}
	return rawjson.AppendText(out, key)
}

// appendValue appends a value on one line. JSON's strings, numbers and booleans are
// TOML's, too.
func appendValue(out []byte, value json.RawMessage) []byte {
	separate := ""
	switch items, isList := rawjson.Items(value); {
	case isList:
		out = append(out, '[')
		for _, item := range items {
			out = appendValue(append(out, separate...), item)
			separate = ", "
		}
		return append(out, ']')
	case rawjson.IsObject(value):
		out = append(out, '{')
		rawjson.Each(value, func(key string, inner json.RawMessage) bool {
			out = append(appendKey(append(out, separate...), key), " = "...)
			out = appendValue(out, inner)
			separate = ", "
			return true
		})
		return append(out, '}')
	}
	if text, ok := rawjson.Text(value); ok {
		return rawjson.AppendText(out, text) // without escapes that TOML does not have
	}
	return append(out, value...)
}
