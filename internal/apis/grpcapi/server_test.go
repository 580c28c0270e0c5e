package grpcapi_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	alphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/apitest"
	"github.com/luanette/luanette/internal/apis/grpcapi"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/base/fault"
)

// serve starts a server with a health service.
func serve(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	healthpb.RegisterHealthServer(server, health.NewServer())
	if register != nil {
		register(server)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is stopped
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listener.Addr().String()
}

// TestReflection asks servers with every version of reflection.
func TestReflection(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(*grpc.Server){
		"both": func(s *grpc.Server) { reflection.Register(s) },
		"v1":   func(s *grpc.Server) { reflection.RegisterV1(s) },
		"v1alpha": func(s *grpc.Server) {
			alphapb.RegisterServerReflectionServer(s, reflection.NewServer(reflection.ServerOptions{Services: s}))
		},
	} {
		s := apitest.MustOpen(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: serve(t, register)}, nil)
		if result := s.MustCall(t, "Health_Check", ``); result.Structured != `{"status":"SERVING"}` {
			t.Errorf("%s: %+v", name, result)
		}
		watch := s.MustCall(t, "Health_Watch", `{"max_messages":1,"max_seconds":0.2}`)
		apitest.Has(t, watch.Structured, `{"items":[{"status":"SERVING"}],"complete":false`)
		unknown := s.MustCall(t, "Health_Check", `{"service":"none"}`)
		apitest.Has(t, unknown.Text, "NOT_FOUND: unknown service")
	}
	_, err := apitest.Open(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: serve(t, nil)}, nil)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.HintOf(err), "schema_file") {
		t.Errorf("a server without reflection: %v, %s", err, fault.HintOf(err))
	}
	_, err = apitest.Open(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: serve(t, func(s *grpc.Server) { reflection.Register(s) },
		grpc.StreamInterceptor(func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
			return status.Error(codes.Unauthenticated, "not hush-hush")
		}))}, nil)
	if fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(err.Error(), "not [secret]") {
		t.Errorf("a server that wants credentials: %v", err)
	}
}

// TestTLS calls a server with TLS that wants a client certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	authority, pair := certpooltest.New(t)
	certFile, keyFile := certpooltest.WritePair(t, pair)
	address := serve(t, func(s *grpc.Server) { reflection.Register(s) }, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
	})))
	config, err := certpool.Config(authority)
	if err != nil {
		t.Fatal(err)
	}
	settings := api.Settings{Kind: api.GRPC, Source: "https://" + address, CertFile: certFile, KeyFile: keyFile}
	trusting := func(env *api.Environment) { env.TLS = config }
	s := apitest.MustOpen(t, grpcapi.Open, settings, trusting)
	if result := s.MustCall(t, "Health_Check", ``); result.Failed {
		t.Errorf("the result is %+v", result)
	}
	for name, c := range map[string]struct {
		change func(*api.Environment)
		want   string
	}{
		"an unknown authority":  {nil, "ca_file"},
		"no TLS":                {func(env *api.Environment) { env.Settings.Source = "http://" + address }, "https://"},
		"no client certificate": {func(env *api.Environment) { env.TLS, env.Settings.CertFile, env.Settings.KeyFile = config, "", "" }, ""},
		"a wrong pair":          {func(env *api.Environment) { env.TLS, env.Settings.KeyFile = config, authority }, "belong together"},
		"another name": {func(env *api.Environment) {
			env.TLS, env.Settings.Source = config, strings.Replace(settings.Source, "127.0.0.1", "127.0.0.2", 1)
		}, ""},
	} {
		_, err := apitest.Open(t, grpcapi.Open, settings, c.change)
		if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.Config || !strings.Contains(fault.HintOf(err), c.want) {
			t.Errorf("%s: %v, hint %q", name, err, fault.HintOf(err))
		}
	}
	plain := serve(t, func(s *grpc.Server) { reflection.Register(s) })
	_, err = apitest.Open(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: "https://" + plain}, nil)
	if !strings.Contains(fault.HintOf(err), "http://") {
		t.Errorf("a server without TLS: %v, hint %q", err, fault.HintOf(err))
	}
}

// ship opens the services of the descriptor file, which a function answers.
func ship(t *testing.T, options string, handle func(stream grpc.ServerStream) error, change func(*api.Environment)) *apitest.Service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ship.binpb")
	descriptors(t, file, `,{"name":"Weigh","inputType":".ship.Box","outputType":".ship.Box","options":{`+options+`}}`)
	address := serve(t, nil, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil { // all fields are unknown to it
			return err
		}
		return handle(stream)
	}))
	return apitest.MustOpen(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: address, SchemaFile: file}, change)
}

// TestStatus explains errors with their details.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := ship(t, "", func(grpc.ServerStream) error {
		said, err := status.New(codes.InvalidArgument, "wrong box").WithDetails(
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "box_id", Description: "is odd"}}}, &structpb.ListValue{})
		if err != nil {
			return err
		}
		raw := said.Proto()
		raw.Details[1].TypeUrl = "type.example/unknown.Type"
		return status.FromProto(raw).Err()
	}, nil)
	result := s.MustCall(t, "Boxes_Send", `{"boxId":1}`)
	if !result.Failed {
		t.Errorf("the result is %+v", result)
	}
	apitest.Has(t, result.Structured, `{"code":"INVALID_ARGUMENT","message":"wrong box","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"box_id","description":"is odd"`,
		`{"@type":"type.example/unknown.Type"}`)
	apitest.Has(t, result.Text, "INVALID_ARGUMENT: wrong box\n")
	if _, err := s.Call(t.Context(), "Boxes_Send", `{}`); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("without a required field: %v", err)
	}
}

// TestRepetition repeats calls only where the description allows it.
func TestRepetition(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]int32{"": 1, `"idempotencyLevel":"IDEMPOTENT"`: 2} {
		var calls atomic.Int32
		s := ship(t, options, func(stream grpc.ServerStream) error {
			if calls.Add(1) == 1 {
				return status.Error(codes.Unavailable, "come back")
			}
			return stream.SendMsg(wrapperspb.Int64(7))
		}, nil)
		result, err := s.Call(t.Context(), "Boxes_Weigh", `{"boxId":1}`)
		if calls.Load() != want || (err == nil) != (want == 2) {
			t.Errorf("%q: %d calls, %+v, %v", options, calls.Load(), result, err)
		}
		if want == 1 && (fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "come back")) {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestMetadata sends the configured metadata, and what the service must know of the call.
func TestMetadata(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	var deadline atomic.Bool
	s := ship(t, "", func(stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		got.Store(md)
		_, has := stream.Context().Deadline()
		deadline.Store(has)
		return stream.SendMsg(wrapperspb.Int64(7))
	}, func(env *api.Environment) {
		env.Header = http.Header{"User-Agent": {"test"}, "X-Key": {"k1"}, "Te": {"no"}, "Grpc-Timeout": {"1S"}}
		env.Settings.User, env.Settings.Password = "ann", "pass"
		env.Timeout = time.Minute
	})
	if result := s.MustCall(t, "Boxes_Send", `{"boxId":1}`); result.Failed || !strings.Contains(result.Structured, `"inside":[]`) {
		t.Errorf("the result is %+v", result)
	}
	md := got.Load().(metadata.MD)
	if strings.Join(md.Get("x-key"), "") != "k1" || strings.Join(md.Get("authorization"), "") != "Basic YW5uOnBhc3M=" || !strings.HasPrefix(strings.Join(md.Get("user-agent"), ""), "test ") {
		t.Errorf("the metadata is %v", md)
	}
	if !deadline.Load() {
		t.Error("the service was told no deadline")
	}
}

// logins gives out tokens.
type logins struct{ count atomic.Int32 }

func (l *logins) At(string) api.Login { return l }

func (l *logins) Token(context.Context, string) (string, error) { return "old", nil }

func (l *logins) Refused(_ context.Context, base string, r api.Refusal) (string, error) {
	l.count.Add(1)
	if r.Status != http.StatusUnauthorized || r.Token != "old" || !strings.HasPrefix(base, "http://127.0.0.1:") {
		return "", errors.New("the refusal is wrong")
	}
	return "fresh", nil
}

// TestLogin calls again with another token.
func TestLogin(t *testing.T) {
	t.Parallel()
	login := &logins{}
	s := ship(t, "", func(stream grpc.ServerStream) error {
		if md, _ := metadata.FromIncomingContext(stream.Context()); strings.Join(md.Get("authorization"), "") != "Bearer fresh" {
			return status.Error(codes.Unauthenticated, "log in")
		}
		return stream.SendMsg(wrapperspb.Int64(7))
	}, func(env *api.Environment) { env.Header, env.Login = http.Header{}, login })
	if result := s.MustCall(t, "Boxes_Send", `{"boxId":1}`); result.Failed || login.count.Load() != 1 {
		t.Errorf("the result is %+v after %d refusals", result, login.count.Load())
	}
	refused := ship(t, "", func(grpc.ServerStream) error { return status.Error(codes.Unauthenticated, "log in") }, nil)
	apitest.Has(t, refused.MustCall(t, "Boxes_Send", `{"boxId":1}`).Text, "UNAUTHENTICATED: log in\nThe service does not accept the credentials of upstream shop")
}

// TestLimits bounds time, size and addresses.
func TestLimits(t *testing.T) {
	t.Parallel()
	slow := ship(t, "", func(stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}, func(env *api.Environment) { env.Timeout = 50 * time.Millisecond })
	if _, err := slow.Call(t.Context(), "Boxes_Send", `{"boxId":1}`); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("a slow call: %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.Cancelled, "enough"))
	if _, err := slow.Call(cancelled, "Boxes_Send", `{"boxId":1}`); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("a cancelled call: %v", err)
	}
	large := ship(t, "", func(stream grpc.ServerStream) error {
		return stream.SendMsg(wrapperspb.String(strings.Repeat("x", 1000)))
	}, func(env *api.Environment) { env.MaxAnswer = 500 })
	if result := large.MustCall(t, "Boxes_Send", `{"boxId":1}`); !result.Failed || !strings.Contains(result.Text, "RESOURCE_EXHAUSTED") {
		t.Errorf("a large answer: %+v", result)
	}
	guarded := func(change func(*api.Environment)) error {
		_, err := apitest.Open(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: serve(t, func(s *grpc.Server) { reflection.Register(s) })}, change)
		return err
	}
	err := guarded(func(env *api.Environment) {
		env.DialControl = func(string, string, syscall.RawConn) error { return errors.New("this address is not allowed") }
	})
	if err == nil || !strings.Contains(err.Error(), "this address is not allowed") {
		t.Errorf("an address that is not allowed: %v", err)
	}
	if guarded(nil) != nil {
		t.Error("an address that is allowed is refused")
	}
}
