package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootclient"
)

// Transport carries messages to one server and back, without interpreting them.
// All methods may be called concurrently.
type Transport interface {
	// Call sends a request and waits for its response, which may be an error
	// response. An error means that no response came: it wraps ErrNotSent if the
	// server cannot have seen the request, it is ctx's cause if ctx ended, and
	// otherwise the outcome is unknown.
	Call(ctx context.Context, out Outgoing) (wire.Message, error)
	// Send sends a notification or a response.
	Send(ctx context.Context, m wire.Message) error
	// SetRevision sets the protocol revision of further messages; empty for none.
	SetRevision(revision string)
	// Done is closed when the transport has become unusable; Err is the reason then.
	Done() <-chan struct{}
	Err() error
	// Close ends the transport and everything it started, and waits for that.
	Close()
}

// Outgoing is a request in the forms that transports need.
type Outgoing struct {
	Message wire.Message
	Encoded []byte // Message as one line of JSON; its params are Message.Params
	About   string // the tool, prompt or resource it is about; if empty, its params tell
	Headers []Header
}

// Header is one HTTP header.
type Header struct{ Name, Value string }

// Hooks take what a Transport reports besides responses. None of them may block.
type Hooks struct {
	// Received takes requests and notifications of the server. call is the id of the
	// request on whose own stream the message came, empty if the transport has only
	// one stream.
	Received func(call wire.ID, m wire.Message)
	// CheckHealth requests a health check, because the server may be down.
	CheckHealth func()
	// Relist requests a new list of tools, because notifications may have been lost.
	Relist func()
	// Stderr takes a line of a process's standard error.
	Stderr func(line string)
	// Garbage takes an excerpt of what is not a message.
	Garbage func(excerpt string)
	// Broadcast takes a broadcast of a ZeroMQ backend, as it came.
	Broadcast func(kind string, data json.RawMessage)
}

// Dialer opens a transport to the server of a spec.
type Dialer func(ctx context.Context, spec Spec, hooks Hooks) (Transport, error)

// ErrNotSent is matched by the errors of requests that the server cannot have
// acted upon, so that repeating them is safe. The ZeroMQ client uses the same error.
var ErrNotSent = hootclient.ErrNotSent

// ErrSessionLost is why a transport ends whose session the server no longer knows.
var ErrSessionLost = errors.New("server no longer knows the session")

// errClosed is why a transport ends that we closed.
var errClosed = errors.New("closed by us")

// endpoint is one address and transport at which a server may answer.
type endpoint struct {
	Transport string `json:"transport"`
	URL       string `json:"url,omitempty"`
}

// legacyOnly reports whether servers reached this way know only the legacy
// handshake: HTTP+SSE predates the modern era, and for ZeroMQ backends, recordings and
// APIs the transport itself answers the handshake.
func (e endpoint) legacyOnly() bool {
	return e.Transport == SSE || e.Transport == Mock || isZMQ(e.Transport) || api.IsKind(e.Transport)
}

// usesHeaders reports whether the transport sends Outgoing.Headers.
func (e endpoint) usesHeaders() bool {
	return e.Transport != Stdio && !e.legacyOnly()
}

// endpoints lists the endpoints to try, in order.
func endpoints(s Spec) []endpoint {
	transport := s.transport()
	if transport != Auto {
		if transport == HTTP && s.URL != withPath(s.URL) {
			return []endpoint{{HTTP, s.URL}, {HTTP, withPath(s.URL)}}
		}
		return []endpoint{{transport, s.URL}}
	}
	list := []endpoint{{HTTP, s.URL}}
	if full := withPath(s.URL); full != s.URL {
		list = append(list, endpoint{HTTP, full})
	}
	if s.Protocol != ProtocolModern {
		list = append(list, endpoint{SSE, s.URL})
	}
	return list
}

// dial opens the transport of an endpoint. A new transport is a file and a line
// here.
func (o *Options) dial(ctx context.Context, spec Spec, e endpoint, hooks Hooks) (Transport, error) {
	spec.URL = e.URL
	if dialer, ok := o.Dialers[e.Transport]; ok {
		return dialer(ctx, spec, hooks)
	}
	switch e.Transport {
	case HTTP:
		return o.dialHTTP(spec, hooks)
	case SSE:
		return o.dialSSE(ctx, spec, hooks)
	case Stdio:
		return o.dialStdio(spec, hooks)
	case ZMQ, ZMQIPC:
		return o.dialZMQ(ctx, spec, hooks)
	case Mock:
		return dialMock(spec)
	}
	if open := o.APIs[e.Transport]; open != nil {
		return o.dialAPI(ctx, spec, open, hooks)
	}
	return nil, fault.New(fault.InvalidParams, "no transport %q", e.Transport).
		WithHint("use an http, https or zmq+tcp url, or a command")
}

// notSent marks err as the error of a request that the server has not seen.
func notSent(err error) error {
	return hootclient.NotSent(err)
}
