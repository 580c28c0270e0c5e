package grpcapi

import (
	"encoding/json"
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
	if text == "" {
		text = "The gRPC method " + string(m.desc.FullName()) + "."
	}
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
