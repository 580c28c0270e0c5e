package grpcapi

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"

	_ "google.golang.org/genproto/googleapis/rpc/errdetails" // the details that services explain errors with
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

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
