// Package grpcapi offers the methods of gRPC services as tools.
package grpcapi

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/description"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// API is a gRPC service. It implements api.API.
type API struct {
	env         api.Environment
	endpoint    *url.URL
	conn        *grpc.ClientConn
	credentials api.Credentials
	clock       clock.Clock
	schema      *description.Description[*service]
}

var _ api.Opener = Open

// Open reads the methods of a service, from a file or from the service itself, and watches
// them for changes.
func Open(ctx context.Context, env api.Environment) (api.API, error) {
	endpoint, err := env.Settings.Endpoint()
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "address of the API")
	}
	conn, err := dial(env, endpoint)
	if err != nil {
		return nil, err
	}
	a := &API{env: env, endpoint: endpoint, conn: conn, credentials: env.Credentials(), clock: clock.Real()}
	a.schema, err = description.Open(ctx, env, description.Source[*service]{
		Ask:   a.reflect,
		Parse: func(text []byte) (*service, error) { return load(env, endpoint, text) },
	})
	if err != nil {
		_ = conn.Close() // it fails only if it is closed already
		return nil, err
	}
	return a, nil
}

// List implements api.API.
func (a *API) List(context.Context) (api.Listing, error) {
	s, problem := a.schema.Value()
	return description.Listing(s.listing, problem), nil
}

// Call implements api.API.
func (a *API) Call(ctx context.Context, call api.Call) (json.RawMessage, error) {
	s, _ := a.schema.Value()
	m := s.methods[call.Tool]
	if m == nil {
		return nil, fault.New(fault.InvalidParams, "there is no tool %s", call.Tool)
	}
	in, err := m.message(s, call.Arguments)
	if err != nil {
		return nil, err
	}
	c := &exchange{a, s, m, call}
	if m.streams() {
		return c.collect(ctx, in)
	}
	return c.unary(ctx, in)
}

// Close implements api.API.
func (a *API) Close() {
	a.schema.Close()
	_ = a.conn.Close() // it fails only if it is closed already
}

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

// dial prepares the connection, which is made when it is first used.
func dial(env api.Environment, endpoint *url.URL) (*grpc.ClientConn, error) {
	security := insecure.NewCredentials()
	if endpoint.Scheme == "https" {
		config, err := certpool.WithPair(env.TLS, env.Settings.CertFile, env.Settings.KeyFile)
		if err != nil {
			return nil, err
		}
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		security = credentials.NewTLS(config)
	}
	dialer := &netguard.Dialer{Dialer: net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second, Control: env.DialControl}, Proxy: env.Proxy}
	// The dialer resolves the name, so that it sees every address that is tried.
	conn, err := grpc.NewClient("passthrough:///"+endpoint.Host,
		grpc.WithTransportCredentials(security),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithUserAgent(env.Header.Get("User-Agent")),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(env.MaxAnswer)))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "address of the API")
	}
	return conn, nil
}

// reserved are the headers that gRPC sets itself.
var reserved = []string{"user-agent", "content-type", "te", "host", "connection", "accept", "accept-encoding"}

// outgoing adds the configured metadata and the token of a login to a context.
func (a *API) outgoing(ctx context.Context, token string) context.Context {
	md := metadata.MD{}
	for name, values := range a.env.Header {
		if key := strings.ToLower(name); !slices.Contains(reserved, key) && !strings.HasPrefix(key, "grpc-") {
			md[key] = slices.Clone(values)
		}
	}
	switch s := a.env.Settings; {
	case token != "":
		md.Set("authorization", "Bearer "+token)
	case s.User != "":
		md.Set("authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.User+":"+s.Password)))
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// usesLogin reports whether calls carry the token of a login. It is not sent in the clear
// to other machines.
func (a *API) usesLogin() bool {
	return a.env.Login != nil && (a.endpoint.Scheme == "https" || netguard.IsLoopback(a.endpoint.Hostname()))
}

func (a *API) token(ctx context.Context) (string, error) {
	if !a.usesLogin() {
		return "", nil
	}
	return a.env.Login.Token(ctx, a.endpoint.String())
}

// reflectionVersions are the versions of server reflection, whose messages are the same.
var reflectionVersions = []string{"grpc.reflection.v1", "grpc.reflection.v1alpha"}

// reflect asks the service for the descriptions of its methods.
func (a *API) reflect(ctx context.Context) ([]byte, error) {
	token, err := a.token(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(a.outgoing(ctx, token)) // ends the stream
	defer cancel()
	for _, version := range reflectionVersions {
		var set *descriptorpb.FileDescriptorSet
		if set, err = a.reflectBy(ctx, version); err == nil {
			return proto.MarshalOptions{Deterministic: true}.Marshal(set)
		}
		if status.Code(err) != codes.Unimplemented {
			break
		}
	}
	switch status.Code(err) {
	case codes.Unimplemented:
		return nil, fault.New(fault.Unavailable, "%s does not tell its methods", a.endpoint.Host).
			WithHint("it has no server reflection: name a file with its descriptors, made by protoc --include_imports --descriptor_set_out: api.schema_file")
	case codes.Unauthenticated, codes.PermissionDenied:
		return nil, fault.New(fault.NeedsAuth, "%s does not tell its methods: %s", a.endpoint.Host, a.shown(status.Convert(err).Message())).
			WithHint("check the credentials of the upstream")
	}
	return nil, a.unanswered(ctx, err)
}

// reflectBy asks with one version of reflection.
func (a *API) reflectBy(ctx context.Context, version string) (*descriptorpb.FileDescriptorSet, error) {
	stream, err := a.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+version+".ServerReflection/ServerReflectionInfo")
	if err != nil {
		return nil, err
	}
	r := &reflector{stream: stream, files: map[string]*descriptorpb.FileDescriptorProto{}}
	services, err := r.services()
	if err != nil {
		return nil, err
	}
	for _, name := range services {
		request := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}}
		if err := r.fetch(request, name); err != nil {
			return nil, err
		}
	}
	if err := r.fetchImports(); err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		set.File = append(set.File, r.files[name])
	}
	return set, nil
}

// reflector asks over one stream.
type reflector struct {
	stream grpc.ClientStream
	files  map[string]*descriptorpb.FileDescriptorProto
	size   int
}

func (r *reflector) ask(request *reflectionpb.ServerReflectionRequest) (*reflectionpb.ServerReflectionResponse, error) {
	answer := &reflectionpb.ServerReflectionResponse{}
	if err := r.stream.SendMsg(request); err != nil {
		// The reason is what the server says; the error itself only says that it ended.
		if err := r.stream.RecvMsg(answer); err != nil {
			return nil, err
		}
		return nil, err
	}
	if err := r.stream.RecvMsg(answer); err != nil {
		return nil, err
	}
	if refused := answer.GetErrorResponse(); refused != nil {
		return nil, status.Error(codes.Code(refused.GetErrorCode()), refused.GetErrorMessage()) // codes are small numbers
	}
	return answer, nil
}

// services are the names of the services, without reflection itself.
func (r *reflector) services() (names []string, err error) {
	answer, err := r.ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	if err != nil {
		return nil, err
	}
	for _, service := range answer.GetListServicesResponse().GetService() {
		if !strings.HasPrefix(service.GetName(), "grpc.reflection.") {
			names = append(names, service.GetName())
		}
	}
	return names, nil
}

// fetch asks for files and those that come with them.
func (r *reflector) fetch(request *reflectionpb.ServerReflectionRequest, what string) error {
	answer, err := r.ask(request)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, raw := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		if r.size += len(raw); r.size > description.MaxSize {
			return status.Error(codes.ResourceExhausted, "the descriptions of the methods are too large")
		}
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(raw, file); err != nil {
			return status.Error(codes.Internal, "the description of "+what+" is not valid")
		}
		r.files[file.GetName()] = file
	}
	return nil
}

// fetchImports asks for the files that others import, unless they have come already.
func (r *reflector) fetchImports() error {
	asked := map[string]bool{}
	for {
		missing := ""
		for _, file := range r.files {
			for _, name := range file.GetDependency() {
				if r.files[name] == nil && !asked[name] {
					missing = name
				}
			}
		}
		if missing == "" {
			return nil
		}
		asked[missing] = true
		request := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileByFilename{FileByFilename: missing}}
		if err := r.fetch(request, missing); err != nil && status.Code(err) != codes.NotFound {
			return err
		}
	}
}

// repair corrects what reflection of grpc-js leaves out, so that the descriptions can be used.
func repair(set *descriptorpb.FileDescriptorSet) {
	homes := map[string]string{}
	for _, file := range set.GetFile() {
		nameEntries(file.GetMessageType())
		addHomes(homes, file.GetPackage(), file.GetName(), file.GetMessageType())
		for _, enum := range file.GetEnumType() {
			homes[join(file.GetPackage(), enum.GetName())] = file.GetName()
		}
	}
	for _, file := range set.GetFile() {
		importHomes(homes, file)
	}
}

func join(scope, name string) string { return strings.TrimPrefix(scope+"."+name, ".") }

// addHomes notes in which file messages and their nested types are.
func addHomes(homes map[string]string, scope, file string, messages []*descriptorpb.DescriptorProto) {
	for _, message := range messages {
		name := join(scope, message.GetName())
		homes[name] = file
		addHomes(homes, name, file, message.GetNestedType())
		for _, enum := range message.GetEnumType() {
			homes[join(name, enum.GetName())] = file
		}
	}
}

// importHomes adds the imports that a file lacks.
func importHomes(homes map[string]string, file *descriptorpb.FileDescriptorProto) {
	use := func(name string) {
		scope := file.GetPackage()
		if absolute, ok := strings.CutPrefix(name, "."); ok {
			name, scope = absolute, ""
		}
		for {
			if home, known := homes[join(scope, name)]; known {
				if home != file.GetName() && !slices.Contains(file.GetDependency(), home) {
					file.Dependency = append(file.Dependency, home)
				}
				return
			}
			if scope == "" {
				return
			}
			scope = scope[:max(strings.LastIndexByte(scope, '.'), 0)]
		}
	}
	useFields(file.GetMessageType(), use)
	for _, service := range file.GetService() {
		for _, method := range service.GetMethod() {
			use(method.GetInputType())
			use(method.GetOutputType())
		}
	}
}

func useFields(messages []*descriptorpb.DescriptorProto, use func(name string)) {
	for _, message := range messages {
		useFields(message.GetNestedType(), use)
		for _, field := range message.GetField() {
			if field.GetTypeName() != "" {
				use(field.GetTypeName())
			}
		}
	}
}

// nameEntries gives the entries of maps the names that the language prescribes.
func nameEntries(messages []*descriptorpb.DescriptorProto) {
	for _, message := range messages {
		nameEntries(message.GetNestedType())
		for _, entry := range message.GetNestedType() {
			if !entry.GetOptions().GetMapEntry() {
				continue
			}
			for _, field := range message.GetField() {
				scope, found := strings.CutSuffix(field.GetTypeName(), entry.GetName())
				if found && (scope == "" || strings.HasSuffix(scope, "."+message.GetName()+".")) {
					name := entryName(field.GetName())
					full := scope + name
					entry.Name, field.TypeName = &name, &full
					break
				}
			}
		}
	}
}

// entryName is the name of the entries of a map.
func entryName(field string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(field, "_") {
		first, size := utf8.DecodeRuneInString(part)
		if size > 0 {
			out.WriteRune(unicode.ToUpper(first))
			out.WriteString(part[size:])
		}
	}
	return out.String() + "Entry"
}
