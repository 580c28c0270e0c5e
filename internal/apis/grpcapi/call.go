package grpcapi

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails" // the details that services explain errors with
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// exchange is one call of a method.
type exchange struct {
	*API
	service *service
	method  *method
	call    api.Call
}

// Limits of one call.
const (
	maxAttempts = 4
	maxRenewals = 2
)

// unary calls a method that answers with one message.
func (c *exchange) unary(ctx context.Context, in proto.Message) (json.RawMessage, error) {
	if c.env.Timeout > 0 { // the service is told the deadline
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.env.Timeout, fault.New(fault.Timeout, "%s did not answer within %v", c.endpoint.Host, c.env.Timeout))
		defer cancel()
	}
	var out *dynamicpb.Message
	err := c.authorized(ctx, func(ctx context.Context) error {
		for attempt := 1; ; attempt++ {
			out = dynamicpb.NewMessage(c.method.desc.Output())
			spanned, end := c.startSpan(ctx, attempt-1)
			err := c.conn.Invoke(spanned, c.method.path, in, out)
			end(err)
			if status.Code(err) != codes.Unavailable || !c.method.repeatable() || attempt == maxAttempts {
				return err
			}
			if err := c.clock.Sleep(ctx, backoff.Policy{}.Delay(attempt)); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return c.failed(ctx, err, nil)
	}
	body, err := c.json(out)
	if err != nil {
		return nil, err
	}
	return api.Result(string(body), api.Object(body)), nil
}

// authorized makes a call with the configured metadata, and again with another token if the
// service does not accept one.
func (c *exchange) authorized(ctx context.Context, do func(context.Context) error) error {
	token, err := c.token(ctx)
	if err != nil {
		return err
	}
	for renewals := 0; ; renewals++ {
		err := do(c.outgoing(ctx, token))
		if status.Code(err) != codes.Unauthenticated || renewals == maxRenewals || !c.usesLogin() {
			return err
		}
		if token, err = c.env.Login.Refused(ctx, c.endpoint.String(), api.Refusal{Status: 401, Token: token}); err != nil {
			return err
		}
	}
}

// json is a message in JSON, without the configured credentials.
func (c *exchange) json(message proto.Message) (json.RawMessage, error) {
	text, err := protojson.MarshalOptions{Resolver: c.service.types, EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return nil, fault.New(fault.Upstream, "the answer cannot be shown: %s", plain(err))
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil { // its blanks differ from run to run
		return nil, fault.Wrap(fault.Internal, err, "write the answer")
	}
	return c.credentials.Hide(out.Bytes()), nil
}

// Limits of a stream.
const (
	defaultMessages = 100
	maxMessages     = 1000
	defaultSeconds  = 30.0
)

// collection is the messages of a stream.
type collection struct {
	items  []byte // a list in JSON that is not closed
	count  int
	reason string // why there may be more; empty: there are no more
}

// result is the collection as structured content.
func (l *collection) result() json.RawMessage {
	out := rawjson.Set(nil, "items", append(l.items, ']'))
	out = rawjson.Set(out, "complete", json.RawMessage(strconv.FormatBool(l.reason == "")))
	if l.reason != "" {
		out = rawjson.SetText(out, "reason", l.reason)
	}
	return out
}

// collect calls a method that answers with a stream, and collects its messages. Endless
// streams end after a time.
func (c *exchange) collect(ctx context.Context, in proto.Message) (json.RawMessage, error) {
	most, seconds := defaultMessages, defaultSeconds
	for _, name := range c.method.own() {
		raw, _ := rawjson.Get(c.call.Arguments, name)
		switch n, ok := rawjson.Number(raw); {
		case ok && name == argMessages:
			most = min(max(int(n), 1), maxMessages)
		case ok && n > 0:
			seconds = n
		}
	}
	limit := time.Duration(seconds * float64(time.Second))
	if c.env.MaxTime > 0 {
		limit = min(limit, c.env.MaxTime)
	}
	// A deadline would be told to the service, which would report it as an error.
	collecting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.clock.AfterFunc(limit, cancel)()
	found := &collection{items: []byte{'['}}
	err := c.authorized(collecting, func(ctx context.Context) error {
		spanned, end := c.startSpan(ctx, 0)
		err := c.receive(spanned, in, most, found)
		end(err)
		return err
	})
	switch {
	case err != nil && ctx.Err() == nil && collecting.Err() != nil:
		found.reason = fmt.Sprintf("the stream was still open after %v", limit)
	case err != nil:
		return c.failed(ctx, err, found)
	}
	structured := found.result()
	return api.Result(string(structured), structured), nil
}

// receive receives the messages of a stream. It returns nil when there are enough.
func (c *exchange) receive(ctx context.Context, in proto.Message, most int, into *collection) error {
	ctx, cancel := context.WithCancel(ctx) // ends a stream that goes on
	defer cancel()
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, c.method.path)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(in); err != nil && !errors.Is(err, io.EOF) { // after EOF the reason is received
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		message := dynamicpb.NewMessage(c.method.desc.Output())
		switch err := stream.RecvMsg(message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case into.count == most:
			into.reason = fmt.Sprintf("there are more than %d messages", most)
			return nil
		}
		body, err := c.json(message)
		if err != nil {
			return err
		}
		if len(into.items)+len(body) > c.env.MaxAnswer {
			into.reason = fmt.Sprintf("the messages have more than %d bytes", c.env.MaxAnswer)
			return nil
		}
		if into.count++; into.count > 1 {
			into.items = append(into.items, ',')
		}
		into.items = append(into.items, body...)
		c.call.Progress(float64(into.count), 0, fmt.Sprintf("message %d", into.count))
	}
}

// startSpan starts the span of one attempt, by OpenTelemetry's conventions for RPC clients.
func (c *exchange) startSpan(ctx context.Context, resends int) (spanned context.Context, end func(error)) {
	if c.env.Tracer == nil {
		return ctx, func(error) {}
	}
	port, _ := strconv.Atoi(c.endpoint.Port()) // the endpoint always has one
	attributes := []attribute.KeyValue{
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", string(c.method.desc.Parent().FullName())),
		attribute.String("rpc.method", string(c.method.desc.Name())), attribute.String("server.address", c.endpoint.Hostname()),
		attribute.Int("server.port", port), attribute.String("luanette.upstream", c.env.Name),
	}
	if resends > 0 {
		attributes = append(attributes, attribute.Int("rpc.grpc.resend_count", resends))
	}
	spanned, span := c.env.Tracer.Start(ctx, c.method.path[1:], trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	if c.env.Propagator != nil {
		md, _ := metadata.FromOutgoingContext(spanned) // a copy
		c.env.Propagator.Inject(spanned, carrier(md))
		spanned = metadata.NewOutgoingContext(spanned, md)
	}
	return spanned, func(err error) {
		span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(status.Code(err))))
		if err != nil {
			span.SetStatus(otelcodes.Error, codeName(status.Code(err)))
		}
		span.End()
	}
}

// carrier writes trace context into metadata.
type carrier metadata.MD

// Get implements OpenTelemetry's TextMapCarrier.
func (c carrier) Get(key string) string { return strings.Join(metadata.MD(c).Get(key), ",") }

// Set implements OpenTelemetry's TextMapCarrier.
func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys implements OpenTelemetry's TextMapCarrier.
func (c carrier) Keys() []string { return slices.Collect(maps.Keys(c)) }

// failed is the outcome of a call that ended with an error: a result, if the service has
// reported it. What came before of a stream is in it.
func (c *exchange) failed(ctx context.Context, err error, before *collection) (json.RawMessage, error) {
	var ours *fault.Error
	if errors.As(err, &ours) { // no answer of the service
		return nil, err
	}
	said := status.Convert(err)
	if said.Code() == codes.DeadlineExceeded && isOver(ctx) {
		<-ctx.Done()
	}
	if ctx.Err() != nil || said.Code() == codes.Unavailable {
		return nil, c.unanswered(ctx, err)
	}
	name := codeName(said.Code())
	structured := rawjson.SetText(rawjson.SetText(nil, "code", name), "message", c.shown(said.Message()))
	text := name + ": " + c.shown(said.Message())
	if details := c.details(said.Proto().GetDetails()); details != nil {
		structured = rawjson.Set(structured, "details", details)
		text += "\n" + string(details)
	}
	if said.Code() == codes.Unauthenticated {
		text += "\n" + c.env.RefusedCredentials()
	}
	if before != nil && before.count > 0 {
		before.reason = text
		kept := before.result()
		structured = rawjson.Extend(structured, kept[1:len(kept)-1])
	}
	return api.Failure(text, structured), nil
}

// isOver reports whether the deadline of a call ends in a moment: services that are told it
// report it a little earlier.
func isOver(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && time.Until(at) < 100*time.Millisecond
}

// unanswered is the error of a call to which no answer came.
func (a *API) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := a.shown(status.Convert(err).Message())
	failure := fault.New(fault.Unavailable, "%s: %s", a.endpoint.Host, text)
	switch {
	case strings.Contains(text, "signed by unknown authority"):
		return failure.WithHint("%s", certpool.Hint(x509.UnknownAuthorityError{}))
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return failure.WithHint("the service has no TLS: write http:// in front of its address")
	case strings.Contains(text, "error reading server preface"):
		return failure.WithHint("the service may require TLS: write https:// in front of its address")
	case strings.Contains(text, "while dialing"):
		return failure.WithHint("no connection was made: the call had no effect and can be repeated")
	}
	return failure.WithHint("find out whether the call took effect before you repeat it")
}

// maxDetails bounds the details of an error that are shown.
const maxDetails = 4 << 10

// shown is a text of the service without the configured credentials.
func (a *API) shown(text string) string {
	return strings.ToValidUTF8(string(a.credentials.Hide([]byte(text[:min(len(text), maxDetails)]))), "")
}

// details are the details of an error in JSON; nil if there are none.
func (c *exchange) details(list []*anypb.Any) json.RawMessage {
	out := []byte{'['}
	for _, detail := range list {
		body, err := c.json(detail)
		if err != nil { // its type is not known
			body = rawjson.SetText(nil, "@type", detail.GetTypeUrl())
		}
		if len(out)+len(body) > maxDetails {
			break
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, body...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}

// codeName is the name of a status code as gRPC's documents write it, such as NOT_FOUND.
func codeName(code codes.Code) string {
	switch code {
	case codes.OK:
		return "OK"
	case codes.Canceled:
		return "CANCELLED"
	}
	var out strings.Builder
	for i, r := range code.String() {
		if i > 0 && unicode.IsUpper(r) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToUpper(r))
	}
	return out.String()
}
