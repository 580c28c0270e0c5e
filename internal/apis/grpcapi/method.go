package grpcapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// method is a method that is a tool.
type method struct {
	name string // of its tool
	path string // /package.Service/Method
	desc protoreflect.MethodDescriptor

	idempotency descriptorpb.MethodOptions_IdempotencyLevel
	deprecated  bool
}

func newMethod(desc protoreflect.MethodDescriptor) *method {
	m := &method{
		name: string(desc.Parent().Name()) + "_" + string(desc.Name()),
		path: "/" + string(desc.Parent().FullName()) + "/" + string(desc.Name()),
		desc: desc,
	}
	if options, ok := desc.Options().(*descriptorpb.MethodOptions); ok {
		m.idempotency, m.deprecated = options.GetIdempotencyLevel(), options.GetDeprecated()
	}
	return m
}

// streams reports whether the method answers with several messages.
func (m *method) streams() bool { return m.desc.IsStreamingServer() }

// repeatable reports whether the description says that repeating a call changes nothing.
func (m *method) repeatable() bool {
	return m.idempotency != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

func (m *method) annotations() string {
	switch m.idempotency {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS:
		return api.ReadOnly
	case descriptorpb.MethodOptions_IDEMPOTENT:
		return `{"readOnlyHint":false,"idempotentHint":true}`
	}
	return api.Writes
}

func (m *method) selectable() api.Operation {
	kind := "unary"
	if m.streams() {
		kind = "stream"
	}
	service := m.desc.Parent()
	return api.Operation{
		Names: []string{string(m.desc.FullName()), string(m.desc.Name()), m.name}, Method: kind, Path: m.path,
		Tags: []string{string(service.FullName()), string(service.Name())},
	}
}

func (m *method) description() string {
	text := commentOf(m.desc)
	text = cmp.Or(text, "The gRPC method "+string(m.desc.FullName())+".")
	if m.deprecated {
		text = "Deprecated. " + text
	}
	if m.streams() {
		text += "\nIt answers with a stream of messages, which are returned as items."
	}
	return api.Shorten(text)
}

// commentOf is the comment of a description, if it has comments.
func commentOf(desc protoreflect.Descriptor) string {
	at := desc.ParentFile().SourceLocations().ByDescriptor(desc)
	text := at.LeadingComments
	if strings.TrimSpace(text) == "" {
		text = at.TrailingComments
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Arguments of tools that are no fields of the message.
const (
	argValue    = "value" // the whole message, of messages that are no objects in JSON
	argMessages = "max_messages"
	argSeconds  = "max_seconds"
)

// own are the arguments that bound a stream, unless the message has fields of these names.
func (m *method) own() (names []string) {
	if !m.streams() {
		return nil
	}
	for _, name := range []string{argMessages, argSeconds} {
		if field := m.desc.Input().Fields().ByJSONName(name); field == nil && m.desc.Input().Fields().ByName(protoreflect.Name(name)) == nil {
			names = append(names, name)
		}
	}
	return names
}

// message reads the message of a call from its arguments.
func (m *method) message(s *service, arguments json.RawMessage) (proto.Message, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	for _, name := range m.own() {
		arguments = rawjson.Delete(arguments, name)
	}
	if isValue(m.desc.Input()) {
		value, ok := rawjson.Get(arguments, argValue)
		if !ok {
			return nil, fault.New(fault.InvalidParams, "the argument %s is missing", argValue)
		}
		arguments = value
	}
	message := dynamicpb.NewMessage(m.desc.Input())
	if err := (protojson.UnmarshalOptions{Resolver: s.types}).Unmarshal(arguments, message); err != nil {
		return nil, fault.New(fault.InvalidParams, "the arguments are no %s: %s", m.desc.Input().Name(), plain(err))
	}
	return message, nil
}

// plain is the text of an error of protojson, whose blanks differ from run to run.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

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
