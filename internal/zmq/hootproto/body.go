package hootproto

import (
	"bytes"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
)

// Encode encodes v as a body. MessagePack is converted from JSON, so that a type
// needs only JSON tags and v may contain raw JSON.
func Encode(content ContentType, v any) ([]byte, error) {
	if content == Binary {
		raw, ok := v.([]byte)
		if !ok {
			return nil, fault.New(fault.Internal, "encode body: a binary body must be []byte, not %T", v)
		}
		return raw, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "encode body")
	}
	return FromJSON(content, raw)
}

// FromJSON converts JSON to a body of that content type.
func FromJSON(content ContentType, raw json.RawMessage) ([]byte, error) {
	switch content {
	case JSON:
		return raw, nil
	case MsgPack:
		return packJSON(raw)
	default:
		return nil, fault.New(fault.Internal, "encode body: %s cannot hold JSON", content)
	}
}

// ToJSON converts a body of JSON or MessagePack to JSON. It validates JSON and
// returns it unchanged.
func ToJSON(content ContentType, body []byte) (json.RawMessage, error) {
	switch content {
	case JSON:
		if !json.Valid(body) {
			return nil, malformed("read body: not JSON: %.40q", body)
		}
		return body, nil
	case MsgPack:
		return unpackJSON(body)
	default:
		return nil, malformed("read body: %s where JSON or MessagePack was expected", content)
	}
}

// tagged encodes v, which must be an object, with a first member "type".
func tagged(kind string, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	name, err := json.Marshal(kind)
	if err != nil {
		return nil, err
	}
	out.WriteString(`{"type":`)
	out.Write(name)
	if rest := bytes.TrimSpace(raw[1 : len(raw)-1]); len(rest) > 0 {
		out.WriteByte(',')
		out.Write(rest)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// kindOf returns the member "type" of an object.
func kindOf(raw json.RawMessage) (string, error) {
	var tag struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &tag); err != nil || tag.Type == "" {
		return "", malformed("read body: not an object with a type: %.40q", raw)
	}
	return tag.Type, nil
}
