package grpcapi

import (
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// wellKnown are the messages that have a form of their own in JSON.
var wellKnown = map[protoreflect.FullName]string{
	"google.protobuf.Timestamp":   `{"type":"string","format":"date-time"}`,
	"google.protobuf.Duration":    `{"type":"string","description":"Seconds, such as 1.5s."}`,
	"google.protobuf.FieldMask":   `{"type":"string","description":"Names of fields, separated by commas."}`,
	"google.protobuf.Struct":      `{"type":"object"}`,
	"google.protobuf.Value":       `{}`,
	"google.protobuf.ListValue":   `{"type":"array","items":{}}`,
	"google.protobuf.Any":         `{"type":"object","properties":{"@type":{"type":"string"}},"required":["@type"]}`,
	"google.protobuf.Empty":       `{"type":"object"}`,
	"google.protobuf.DoubleValue": `{"type":"number"}`,
	"google.protobuf.FloatValue":  `{"type":"number"}`,
	"google.protobuf.Int64Value":  `{"type":["string","integer"]}`,
	"google.protobuf.UInt64Value": `{"type":["string","integer"]}`,
	"google.protobuf.Int32Value":  `{"type":"integer"}`,
	"google.protobuf.UInt32Value": `{"type":"integer"}`,
	"google.protobuf.BoolValue":   `{"type":"boolean"}`,
	"google.protobuf.StringValue": `{"type":"string"}`,
	"google.protobuf.BytesValue":  `{"type":"string","contentEncoding":"base64"}`,
}

// isValue reports whether a message is no object in JSON.
func isValue(m protoreflect.MessageDescriptor) bool {
	schema, known := wellKnown[m.FullName()]
	return known && !strings.HasPrefix(schema, `{"type":"object"`)
}

// scalars are the schemas of values. Large integers may be numbers where they are given,
// and are strings where they are returned; so are numbers that JSON has not.
var scalars = map[protoreflect.Kind]string{
	protoreflect.BoolKind: `{"type":"boolean"}`, protoreflect.StringKind: `{"type":"string"}`,
	protoreflect.BytesKind: `{"type":"string","contentEncoding":"base64"}`,
	protoreflect.Int32Kind: `{"type":"integer"}`, protoreflect.Sint32Kind: `{"type":"integer"}`, protoreflect.Sfixed32Kind: `{"type":"integer"}`,
	protoreflect.Uint32Kind: `{"type":"integer","minimum":0}`, protoreflect.Fixed32Kind: `{"type":"integer","minimum":0}`,
	protoreflect.Int64Kind: `{"type":["string","integer"]}`, protoreflect.Sint64Kind: `{"type":["string","integer"]}`,
	protoreflect.Sfixed64Kind: `{"type":["string","integer"]}`, protoreflect.Uint64Kind: `{"type":["string","integer"]}`,
	protoreflect.Fixed64Kind: `{"type":["string","integer"]}`,
	protoreflect.FloatKind:   `{"type":["number","string"]}`, protoreflect.DoubleKind: `{"type":["number","string"]}`,
}

// schemas writes JSON Schemas of messages.
type schemas struct {
	defs     api.Definitions
	messages map[string]protoreflect.MessageDescriptor
	depth    int                     // of an outline; less than zero: schemas are complete, with references
	above    []protoreflect.FullName // messages around that of an outline
}

func newSchemas() *schemas {
	s := &schemas{messages: map[string]protoreflect.MessageDescriptor{}, depth: -1}
	s.defs.Write = func(out []byte, name string) []byte { return s.appendObject(out, s.messages[name]) }
	return s
}

// input is the schema of the arguments of a method.
func (m *method) input() json.RawMessage {
	s := newSchemas()
	var out []byte
	switch message := m.desc.Input(); {
	case isValue(message):
		out = append([]byte(`{"type":"object","properties":{"value":`), wellKnown[message.FullName()]...)
		out = append(out, `},"required":["value"]}`...)
	case wellKnown[message.FullName()] != "":
		out = []byte(wellKnown[message.FullName()])
	default:
		out = s.appendObject(nil, message)
	}
	for _, name := range m.own() {
		properties, _ := rawjson.Get(out, "properties")
		out = rawjson.Set(out, "properties", rawjson.Set(properties, name, json.RawMessage(bounds[name])))
	}
	return append(s.defs.AppendTo(slices.Clip(out[:len(out)-1])), '}')
}

// bounds are the schemas of the arguments that bound a stream.
var bounds = map[string]string{
	argMessages: `{"type":"integer","minimum":1,"maximum":1000,"description":"How many messages are returned at most (100)."}`,
	argSeconds:  `{"type":"number","exclusiveMinimum":0,"description":"How long messages are collected at most (30)."}`,
}

// appendObject appends the schema of a message.
func (s *schemas) appendObject(out []byte, message protoreflect.MessageDescriptor) []byte {
	out = append(out, `{"type":"object"`...)
	if text := commentOf(message); text != "" && s.depth < 0 {
		out = rawjson.AppendText(append(out, `,"description":`...), api.Shorten(text))
	}
	out = append(out, `,"properties":{`...)
	var required []string
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		out = s.appendField(rawjson.AppendKey(out, field.JSONName()), field)
		if field.Cardinality() == protoreflect.Required {
			required = append(required, field.JSONName())
		}
	}
	out = append(out, '}')
	if s.depth >= 0 { // an outline
		return append(out, '}')
	}
	if len(required) > 0 {
		list, _ := json.Marshal(required) // texts can always be written
		out = append(append(out, `,"required":`...), list...)
	}
	return append(out, `,"additionalProperties":false}`...)
}

// appendField appends the schema of a field with what is said about it.
func (s *schemas) appendField(out []byte, field protoreflect.FieldDescriptor) []byte {
	var schema []byte
	switch {
	case field.IsMap():
		schema = append([]byte(`{"type":"object","additionalProperties":`), s.appendValue(nil, field.MapValue())...)
		schema = append(schema, '}')
	case field.IsList():
		schema = append(s.appendValue([]byte(`{"type":"array","items":`), field), '}')
	default:
		schema = s.appendValue(nil, field)
	}
	if s.depth >= 0 || strings.HasPrefix(string(schema), `{"$ref"`) { // a reference stays alone, since not all models accept more beside it
		return append(out, schema...)
	}
	text := commentOf(field)
	if group := field.ContainingOneof(); group != nil && group.Fields().Len() > 1 {
		names := make([]string, group.Fields().Len())
		for i := range names {
			names[i] = group.Fields().Get(i).JSONName()
		}
		text = strings.TrimSpace(text + " Give only one of " + strings.Join(names, ", ") + ".")
	}
	if text != "" {
		schema = rawjson.SetText(schema, "description", api.Shorten(text))
	}
	return append(out, schema...)
}

// appendValue appends the schema of a value of a field, of an item or of a map's value.
func (s *schemas) appendValue(out []byte, field protoreflect.FieldDescriptor) []byte {
	switch {
	case field.Enum() != nil:
		return s.appendEnum(out, field.Enum())
	case field.Message() == nil:
		return append(out, scalars[field.Kind()]...)
	case wellKnown[field.Message().FullName()] != "":
		return append(out, wellKnown[field.Message().FullName()]...)
	case s.depth < 0:
		name := string(field.Message().FullName())
		s.messages[name] = field.Message()
		return s.defs.Refer(out, name)
	}
	return s.appendOutline(out, field.Message())
}

func (s *schemas) appendEnum(out []byte, enum protoreflect.EnumDescriptor) []byte {
	switch {
	case enum.FullName() == "google.protobuf.NullValue":
		return append(out, `{}`...)
	case s.depth >= 0: // values that the description lacks are numbers
		return append(out, `{"type":["string","integer"]}`...)
	}
	out = append(out, `{"type":"string","enum":[`...)
	for i := range enum.Values().Len() {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendText(out, string(enum.Values().Get(i).Name()))
	}
	return append(out, `]}`...)
}

// Limits of the outline of results.
const (
	outlineDepth = 3
	maxOutline   = 6 << 10
)

// appendOutline appends the schema of a message a few levels deep.
func (s *schemas) appendOutline(out []byte, message protoreflect.MessageDescriptor) []byte {
	if s.depth == 0 || len(out) > maxOutline || slices.Contains(s.above, message.FullName()) {
		return append(out, `{"type":"object"}`...)
	}
	s.depth, s.above = s.depth-1, append(s.above, message.FullName())
	out = s.appendObject(out, message)
	s.depth, s.above = s.depth+1, s.above[:len(s.above)-1]
	return out
}

// output is an outline of what a call returns.
func (m *method) output() json.RawMessage {
	s := &schemas{depth: outlineDepth}
	message := m.desc.Output()
	schema := []byte(wellKnown[message.FullName()])
	if len(schema) == 0 {
		schema = s.appendOutline(nil, message)
	}
	switch {
	case m.streams():
		out := append([]byte(`{"type":"object","properties":{"items":{"type":"array","items":`), schema...)
		return append(out, `},"complete":{"type":"boolean"},"reason":{"type":"string"}}}`...)
	case isValue(message):
		return append(append([]byte(`{"type":"object","properties":{"result":`), schema...), `}}`...)
	}
	return schema
}
