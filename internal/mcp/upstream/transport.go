package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
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
	// Traits are what is special about the transport. They are asked for once.
	Traits() Traits
	// Done is closed when the transport has become unusable; Err is the reason then.
	Done() <-chan struct{}
	Err() error
	// Close ends the transport and everything it started, and waits for that.
	Close()
}

// Traits are what only some transports have or can do. The zero value is a transport without
// any of it.
type Traits struct {
	// CancelsOnDisconnect reports whether a call whose context ends is cancelled by that, so
	// that the server needs no notification.
	CancelsOnDisconnect func() bool
	// KeepsContext means that what a call began, such as the reading of the end of its answer,
	// may go on after it succeeded.
	KeepsContext bool
	// HasSession reports whether the server has answered initialize with a session, without
	// which it cannot ask questions; nil: it needs none.
	HasSession func() bool
	// Listen opens the stream for notifications of the sessions era that belong to no request.
	Listen func(ctx context.Context)
	// Stderr is what a process wrote to its standard error: the first and the last lines.
	Stderr func() string
	// Work is what a process with its children has done; nil: there is no process.
	Work func() work
	// LeftOut says why entries of the last list are not tools, for a transport that translates.
	LeftOut func() []string

	// Protocol is the name and revision of a protocol other than MCP.
	Protocol func() string
	// HealthInterval is how long the server may be silent before its health is checked; zero:
	// as configured.
	HealthInterval time.Duration
	// AnswersWhileBusy reports whether the server must answer health checks while calls are
	// active.
	AnswersWhileBusy func() bool
	// LastReceived is when the server last sent anything, also what is no message of MCP.
	LastReceived func() time.Time
	// Abort fails the active calls with the reason why the transport is about to be closed.
	Abort func(reason error)
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

// translated is a service that does not speak MCP, for transports that translate.
type translated interface {
	initialize(ctx context.Context) (json.RawMessage, error)
	ping(ctx context.Context) error
	list(ctx context.Context) (json.RawMessage, error)
	call(ctx context.Context, m wire.Message) (json.RawMessage, error)
}

// translate answers a request of MCP. What the service refuses is an answer; other errors
// are returned.
func translate(ctx context.Context, to translated, m wire.Message) (wire.Message, error) {
	var result json.RawMessage
	var err error
	switch m.Method {
	case wire.MethodInitialize:
		result, err = to.initialize(ctx)
	case wire.MethodPing:
		result, err = json.RawMessage(`{}`), to.ping(ctx)
	case wire.MethodToolsList:
		result, err = to.list(ctx)
	case wire.MethodToolsCall:
		result, err = to.call(ctx, m)
	default:
		err = wire.Errorf(wire.CodeMethodNotFound, "it is no MCP server and has no %s", m.Method)
	}
	var refused *wire.Error
	if err != nil && !errors.As(err, &refused) {
		return wire.Message{}, err
	}
	return wire.Answer(m.ID, result, err), nil
}

// handshake is the answer to initialize of a service that has only tools.
func handshake(name, version string) json.RawMessage {
	result := rawjson.SetText(nil, "protocolVersion", wire.NewestLegacy)
	result = rawjson.Set(result, "capabilities", json.RawMessage(`{"tools":{"listChanged":true}}`))
	return rawjson.Set(result, "serverInfo", rawjson.SetText(rawjson.SetText(nil, "name", name), "version", version))
}

// listed is the answer to tools/list.
func listed(definitions []json.RawMessage) json.RawMessage {
	size := 16
	for _, definition := range definitions {
		size += len(definition) + 1
	}
	result := append(make([]byte, 0, size), `{"tools":[`...)
	for i, definition := range definitions {
		if i > 0 {
			result = append(result, ',')
		}
		result = append(result, definition...)
	}
	return append(result, `]}`...)
}

// leftOut is why entries of the last list are not tools.
type leftOut struct {
	mu      sync.Mutex
	reasons []string
}

func (l *leftOut) set(reasons []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = reasons
}

func (l *leftOut) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reasons
}

// dispatcher matches responses to requests for transports on which all responses
// come over one stream. Its owner passes every message to receive, and calls fail
// when the stream ends.
type dispatcher struct {
	hooks Hooks
	done  chan struct{}

	mu      sync.Mutex
	waiting map[wire.ID]chan response
	err     error
}

// response is how a call ended.
type response struct {
	message wire.Message
	err     error
}

func newDispatcher(hooks Hooks) *dispatcher {
	return &dispatcher{hooks: hooks, done: make(chan struct{}), waiting: map[wire.ID]chan response{}}
}

// expect registers a request before it is sent. The caller calls forget.
func (d *dispatcher) expect(id wire.ID) (<-chan response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, notSent(d.err)
	}
	answer := make(chan response, 1)
	d.waiting[id] = answer
	return answer, nil
}

func (d *dispatcher) forget(id wire.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// receive takes one message of the stream.
func (d *dispatcher) receive(data []byte) {
	m, err := parse(data)
	switch {
	case err != nil:
		d.hooks.Garbage(excerpt(data))
	case m.IsResponse() && m.ID == wire.NullID:
		d.hooks.Garbage(excerpt(data)) // the server could not parse one of our messages, and does not say which
	case m.IsResponse():
		d.resolve(m.ID, response{message: m})
	default:
		d.hooks.Received("", m)
	}
}

// resolve ends the call of that id, if it is still waiting.
func (d *dispatcher) resolve(id wire.ID, r response) {
	d.mu.Lock()
	answer := d.waiting[id]
	delete(d.waiting, id)
	d.mu.Unlock()
	if answer != nil {
		answer <- r
	}
}

// fail ends the transport; the first reason stays.
func (d *dispatcher) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		close(d.done)
	}
}

// Done implements Transport.
func (d *dispatcher) Done() <-chan struct{} { return d.done }

// Err implements Transport.
func (d *dispatcher) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// SetRevision implements Transport: there is no header that carries it.
func (d *dispatcher) SetRevision(string) {}

// Traits implements Transport.
func (d *dispatcher) Traits() Traits { return Traits{} }

// maxExcerpt is how much of a server's text is shown in errors and events, in bytes.
const maxExcerpt = 300

// excerpt is the beginning of data as one line of printable text.
func excerpt(data []byte) string {
	if len(data) > maxExcerpt {
		data = data[:maxExcerpt]
		return clean(string(data)) + "…"
	}
	return clean(string(data))
}

// colours matches what colours text on a terminal.
var colours = lazyregexp.New("\x1b\\[[0-9;]*m")

// clean makes text one line of printable characters.
func clean(text string) string {
	text = colours().ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
}

// parse reads a message. It replaces invalid UTF-8, so that one bad byte does not
// make the whole message unreadable.
func parse(data []byte) (wire.Message, error) {
	m, err := wire.Parse(data)
	if err != nil && !utf8.Valid(data) {
		return wire.Parse(bytes.ToValidUTF8(data, []byte("\uFFFD")))
	}
	return m, err
}
