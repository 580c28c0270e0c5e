package durable

import (
	"encoding/base64"
	"fmt"
)

// serializer stores bytes in DBOS's text columns.
type serializer struct{}

// Name is stored with every value, so it must never change.
func (serializer) Name() string { return "octets" }

// Encode takes []byte or nil.
func (serializer) Encode(data any) (*string, error) {
	var text string
	switch v := data.(type) {
	case nil:
	case []byte:
		text = "." + base64.RawStdEncoding.EncodeToString(v)
	default:
		return nil, fmt.Errorf("encode %T: not bytes", data)
	}
	return &text, nil
}

// Decode returns []byte, nil for an empty text.
func (serializer) Decode(data *string) (any, error) {
	if data == nil || *data == "" {
		return []byte(nil), nil
	}
	return base64.RawStdEncoding.DecodeString((*data)[1:])
}
