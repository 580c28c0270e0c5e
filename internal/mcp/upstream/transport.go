package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootclient"
)

// Transport carries messages to one server and back. It knows nothing of what they
// mean. All methods may be called concurrently.
type Transport interface {
	// Call sends a request and waits for its response, which may be an error
	// response. The error tells that none came: ErrNotSent in its chain when the
	// server cannot have seen the request, ctx's error when ctx ended, else
	// nobody knows.
	Call(ctx context.Context, out Outgoing) (wire.Message, error)
	// Send sends a notification or a response.
	Send(ctx context.Context, m wire.Message) error
	// SetRevision sets the revision messages are sent under from now on; empty is none yet.
	SetRevision(revision string)
	// Done is closed when the link is no longer of use; Err then says why.
	Done() <-chan struct{}
	Err() error
	// Close ends the link and everything it started, and waits for that.
	Close()
}

// Outgoing is a request with what transports with headers add to it.
type Outgoing struct {
	Message wire.Message
	About   string // the tool, prompt or resource it is about; empty where its params tell
	Headers []Header
}

// Header is one HTTP header.
type Header struct{ Name, Value string }

// Hooks are what a Link tells besides responses. None of them may block.
type Hooks struct {
	// Received takes requests and notifications of the server. call is the id of the
	// request on whose own stream the message came, empty where a link has only
	// one stream.
	Received func(call wire.ID, m wire.Message)
	// CheckHealth says that the server may be gone.
	CheckHealth func()
	// Relist says that notifications may have been lost.
	Relist func()
	// Stderr takes a line of a child's standard error, Garbage what is no message.
	Stderr  func(line string)
	Garbage func(excerpt string)
	// Broadcast takes what a backend tells everybody, as it came.
	Broadcast func(kind string, data json.RawMessage)
}

// Dialer opens a link to the server of a spec.
type Dialer func(ctx context.Context, spec Spec, hooks Hooks) (Transport, error)

// ErrNotSent is in the chain of errors of requests that the server cannot have
// acted upon, so that repeating them is safe. Backends' errors say it alike.
var ErrNotSent = hootclient.ErrNotSent

// ErrSessionLost is why a link ends whose session the server no longer knows.
var ErrSessionLost = errors.New("server no longer knows the session")

// errClosed is why a link ends that we closed.
var errClosed = errors.New("closed by us")

// endpoint is one way to try to reach a server.
type endpoint struct {
	Transport string `json:"transport"`
	URL       string `json:"url,omitempty"`
}

// legacyOnly tells that servers reached this way know the legacy greeting only: those
// before Streamable HTTP, and backends, for which the link answers.
func (e endpoint) legacyOnly() bool { return e.Transport == SSE || isZMQ(e.Transport) }

// endpoints lists the ways to try, in order.
func endpoints(s Spec) []endpoint {
	transport := s.transport()
	if transport != Auto {
		if transport == HTTP && s.URL != withPath(s.URL) {
			return []endpoint{{HTTP, s.URL}, {HTTP, withPath(s.URL)}}
		}
		return []endpoint{{transport, s.URL}}
	}
	ways := []endpoint{{HTTP, s.URL}}
	if full := withPath(s.URL); full != s.URL {
		ways = append(ways, endpoint{HTTP, full})
	}
	if s.Protocol != ProtocolModern {
		ways = append(ways, endpoint{SSE, s.URL})
	}
	return ways
}

// dial opens a link of the endpoint's kind. A new transport is a file and a
// line here.
func (o *Options) dial(ctx context.Context, spec Spec, way endpoint, hooks Hooks) (Transport, error) {
	spec.URL = way.URL
	switch way.Transport {
	case HTTP:
		return o.dialHTTP(spec, hooks)
	case SSE:
		return o.dialSSE(ctx, spec, hooks)
	case Stdio:
		return o.dialStdio(spec, hooks)
	case ZMQ, ZMQIPC:
		return o.dialZMQ(ctx, spec, hooks)
	}
	if dialer, ok := o.Dialers[way.Transport]; ok {
		return dialer(ctx, spec, hooks)
	}
	return nil, fault.New(fault.InvalidParams, "no transport %q", way.Transport).
		WithHint("use an http, https or zmq+tcp url, or a command")
}

// notSent marks err as the fate of a request the server never saw.
func notSent(err error) error {
	if errors.Is(err, ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotSent, err)
}
