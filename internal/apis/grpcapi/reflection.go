package grpcapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/luanette/luanette/internal/apis/description"
	"github.com/luanette/luanette/internal/base/fault"
)

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
		return nil, status.Error(codes.Code(refused.GetErrorCode()), refused.GetErrorMessage()) //nolint:gosec // codes are small numbers
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
