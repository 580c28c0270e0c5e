package grpcapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// service is what is known of a service from its descriptions.
type service struct {
	types   resolver
	listing api.Listing
	methods map[string]*method // by the names of their tools
}

// load makes the tools of a set of file descriptors.
func load(env api.Environment, endpoint *url.URL, text []byte) (*service, error) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(text, set); err != nil || len(set.GetFile()) == 0 {
		return nil, fault.New(fault.InvalidParams, "the schema is no set of descriptors").
			WithHint("make it with protoc --include_imports --include_source_info --descriptor_set_out=FILE")
	}
	repair(set)
	files, err := protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(set)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read the descriptors").WithHint("protoc --include_imports makes a complete set")
	}
	s := &service{types: resolver{dynamicpb.NewTypes(files)}, methods: map[string]*method{}}
	s.listing.Title = endpoint.Host
	var names []string
	var all []*method
	for _, file := range set.GetFile() { // in their order, which is always the same
		described, err := files.FindFileByPath(file.GetName())
		if err != nil {
			continue // it was made of the same set
		}
		for i := range described.Services().Len() {
			one := described.Services().Get(i)
			if strings.HasPrefix(string(one.FullName()), "grpc.reflection.") {
				continue
			}
			names = append(names, string(one.FullName()))
			all = append(all, s.methodsOf(one)...)
		}
	}
	s.add(all, env, endpoint)
	s.listing.Instructions = "Tools are the methods of gRPC services: " + api.Shorten(strings.Join(names, ", "))
	return s, nil
}

// methodsOf are the methods of a service that can be tools.
func (s *service) methodsOf(one protoreflect.ServiceDescriptor) (list []*method) {
	for i := range one.Methods().Len() {
		desc := one.Methods().Get(i)
		if desc.IsStreamingClient() {
			s.listing.LeftOut = append(s.listing.LeftOut, fmt.Sprintf("%s: it takes a stream of messages", desc.FullName()))
			continue
		}
		list = append(list, newMethod(desc))
	}
	return list
}

// add names the methods and adds those that are selected.
func (s *service) add(all []*method, env api.Environment, endpoint *url.URL) {
	count := map[string]int{}
	for _, m := range all {
		count[m.name]++
	}
	budget := api.NameBudget(env.Name)
	for _, m := range all {
		if len(m.name) > budget || count[m.name] > 1 {
			m.name = api.HashedName(m.name, m.path, budget)
		}
		if env.Settings.Selects(m.selectable()) {
			s.methods[m.name] = m
			s.listing.Tools = append(s.listing.Tools, m.definition(endpoint))
		}
	}
}

// definition is the tool of a method as in tools/list.
func (m *method) definition(endpoint *url.URL) json.RawMessage {
	out := rawjson.SetText(nil, "name", m.name)
	out = rawjson.SetText(out, "description", m.description())
	out = rawjson.Set(out, "inputSchema", m.input())
	out = rawjson.Set(out, "outputSchema", m.output())
	out = rawjson.Set(out, "annotations", json.RawMessage(m.annotations()))
	return rawjson.Set(out, "_meta", rawjson.SetText(nil, api.OperationKey, endpoint.String()+m.path))
}

// resolver finds the types of messages inside messages: those of the service, and those
// that this program has, such as the details of errors.
type resolver struct{ types *dynamicpb.Types }

// FindMessageByName implements protoregistry.MessageTypeResolver.
func (r resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if found, err := r.types.FindMessageByName(name); err == nil {
		return found, nil
	}
	return protoregistry.GlobalTypes.FindMessageByName(name)
}

// FindMessageByURL implements protoregistry.MessageTypeResolver.
func (r resolver) FindMessageByURL(address string) (protoreflect.MessageType, error) {
	if found, err := r.types.FindMessageByURL(address); err == nil {
		return found, nil
	}
	return protoregistry.GlobalTypes.FindMessageByURL(address)
}

// FindExtensionByName implements protoregistry.ExtensionTypeResolver.
func (r resolver) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return r.types.FindExtensionByName(name)
}

// FindExtensionByNumber implements protoregistry.ExtensionTypeResolver.
func (r resolver) FindExtensionByNumber(message protoreflect.FullName, field protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	return r.types.FindExtensionByNumber(message, field)
}
