package durable

import (
	"encoding/base64"
	"fmt"
)

// octets is how DBOS stores our records: it has text columns, we have bytes.
type octets struct{}

// Name is stored beside every value and must never change.
func (octets) Name() string { return "octets" }

// Encode takes bytes, or nothing.
func (octets) Encode(data any) (*string, error) {
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

// Decode gives bytes back, nil for nothing.
func (octets) Decode(data *string) (any, error) {
	if data == nil || *data == "" {
		return []byte(nil), nil
	}
	return base64.RawStdEncoding.DecodeString((*data)[1:])
}
