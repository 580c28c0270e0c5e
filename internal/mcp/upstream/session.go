package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// session is a connection to a server after the handshake. It matches what the
// server sends to the pending calls and their callers.
type session struct {
	connection *connection
	transport  Transport
	traits     Traits // of the transport
	endpoint   endpoint
	peer       peer         // without its revision
	intercept  *interceptor // nil: requests go straight to the transport
	life       *lifetime
	failed     chan error    // takes the reason when a caller finds that the session is unusable
	idle       chan struct{} // a session that is to be renewed has no call any more

	era          wire.Era
	revision     string
	capabilities json.RawMessage
	serverInfo   json.RawMessage
	instructions json.RawMessage

	describeOnce sync.Once
	described    []attribute.KeyValue // see spanAttributes

	ids            atomic.Int64
	lastReceived   atomic.Int64 // Unix nanoseconds of the last message from the server
	logLevelSet    atomic.Pointer[string]
	answeredCaller atomic.Bool // at least one call of a caller was answered
	callsBefore    int64       // how many calls there were before it, to tell whether it was used
	start          programStart
	settled        atomic.Bool // what it offers was listed: its start is over

	questionSlots chan struct{} // bounds the server's requests in progress

	mu            sync.Mutex
	renewing      bool   // its secrets have changed
	retired       bool   // it takes no more calls
	acked         func() // called when the server acknowledges a subscription
	pending       map[wire.ID]*inflight
	questions     map[wire.ID]context.CancelFunc // the server's requests in progress
	subscriptions map[string]bool                // subscribed resources, modern only
	resubscribe   context.CancelCauseFunc        // ends the open subscription; nil if there is none
}

// newSession prepares a session before its handshake.
func newSession(c *connection, e endpoint) *session {
	return &session{
		connection: c, endpoint: e, peer: newPeer(c.name, e), life: newLifetime(), failed: make(chan error, 1), idle: make(chan struct{}, 1),
		questionSlots: make(chan struct{}, maxQuestions), acked: func() {},
		pending: map[wire.ID]*inflight{}, questions: map[wire.ID]context.CancelFunc{}, subscriptions: map[string]bool{},
	}
}

// logLevel is the lowest level of log messages that the server should send.
func (s *session) logLevel() string {
	if set := s.logLevelSet.Load(); set != nil {
		return *set
	}
	return "info"
}

// checkHealth sends a request that every server answers. An error response counts
// as healthy.
func (s *session) checkHealth(ctx context.Context, timeout time.Duration) error {
	method := wire.MethodPing
	if s.era == wire.Modern {
		method = wire.MethodDiscover
	}
	_, err := s.request(ctx, &outcall{method: method, params: json.RawMessage(`{}`), timeout: timeout})
	var answered *wire.Error
	var status *statusError
	if errors.As(err, &answered) || errors.As(err, &status) && !status.auth() && status.Code < 500 {
		return nil
	}
	return err
}

// healthInterval is how long the server may be silent before its health is checked.
func (s *session) healthInterval() time.Duration {
	usual := s.connection.opts.HealthInterval
	return min(positive(s.traits.HealthInterval, usual), usual)
}

// sinceLastReceived is how long the server has been silent.
func (s *session) sinceLastReceived() time.Duration {
	return time.Since(s.lastMessage())
}

// lastMessage is when the last message of the server arrived.
func (s *session) lastMessage() time.Time {
	if s.traits.LastReceived != nil {
		return s.traits.LastReceived()
	}
	return time.Unix(0, s.lastReceived.Load())
}

// abort fails the active calls with the reason why the session is about to be closed, if
// the transport can.
func (s *session) abort(why error) error {
	if s.traits.Abort != nil {
		s.traits.Abort(errors.New(why.Error())) // its text grows with time
	}
	return why
}

// activeCalls is the number of pending calls that have a caller.
func (s *session) activeCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls()
	return n
}

// hasCapability reports whether the server declared a capability, such as "tools"
// or "tools", "listChanged".
func (s *session) hasCapability(name string, sub ...string) bool {
	value, ok := rawjson.Get(s.capabilities, name)
	for _, key := range sub {
		if !ok {
			return false
		}
		value, ok = rawjson.Get(value, key)
	}
	return ok && string(value) != "false" && string(value) != "null"
}

// close ends the session and waits for everything it started.
func (s *session) close() {
	s.life.end(errClosed)
	s.transport.Close()
	s.life.wait()
}

// detection is how a server was reached and in which era it was used. It is stored: the next
// attempt begins at that endpoint.
type detection struct {
	Endpoint endpoint `json:"way"`
	Era      wire.Era `json:"era"`
}

// connectAttempt is one attempt to connect to the server of a spec.
type connectAttempt struct {
	*connection
	spec  Spec  // with all its values
	hooks Hooks // Received is set per session
}

// open connects to the server: first at the endpoint that worked last time, then
// at the others. It tries the next endpoint only if something answered at this one
// that is not an MCP server of that kind.
func (a *connectAttempt) open(ctx context.Context, known endpoint) (*session, error) {
	limit := a.opts.startTimeout(a.spec)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &startTimeoutError{limit})
	defer cancel()
	list := endpoints(a.spec)
	if i := slices.Index(list, known); i > 0 {
		list = append([]endpoint{known}, slices.Delete(slices.Clone(list), i, i+1)...)
	}
	var first error
	for _, e := range list {
		s, err := a.handshake(ctx, e)
		if err == nil {
			return s, nil
		}
		if _, auth := isAuthError(err); first == nil || auth {
			first = err
		}
		if ctx.Err() != nil || !tryNextEndpoint(err) {
			break
		}
	}
	return nil, first
}

// startTimeoutError is why an attempt ends that takes too long.
type startTimeoutError struct{ limit time.Duration }

func (e *startTimeoutError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// tryNextEndpoint reports whether something answered, but not like an MCP server
// with this transport.
func tryNextEndpoint(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return !status.auth() && status.Code < 500
	}
	return !errors.Is(err, ErrNotSent)
}

// handshake opens a session and agrees on an era: the only one that the spec or the
// transport allows, or else the one in which the server can ask something while a call
// runs, which is the sessions era. A modern server can ask only by ending the call, which
// few tools know.
func (a *connectAttempt) handshake(ctx context.Context, e endpoint) (*session, error) {
	s, err := a.dial(ctx, e)
	if err != nil {
		return nil, err
	}
	switch {
	case e.legacyOnly(), a.spec.Protocol == ProtocolLegacy:
		err = s.initialize(ctx)
	case a.spec.Protocol == ProtocolModern:
		err = s.discover(ctx)
	case e.Transport == Stdio:
		err = s.agreeWithProcess(ctx)
	default:
		err = s.agree(ctx)
	}
	if err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

// agreeWithProcess performs the legacy handshake, and the modern one if the process refuses
// that. Silence means nothing, because a process may take long to start and then read
// everything at once: a server of both eras that gets both handshakes is in neither.
func (s *session) agreeWithProcess(ctx context.Context) error {
	err := s.initialize(ctx)
	if err == nil || ctx.Err() != nil || errors.Is(err, errProcess) || errors.Is(err, ErrNotSent) {
		return err
	}
	probe, cancel := context.WithTimeoutCause(ctx, s.connection.opts.ProbeTimeout, errNoHandshake)
	defer cancel()
	if s.discover(probe) == nil {
		return nil
	}
	return err // a server that refuses both is a legacy one that has a reason
}

// agree performs the modern handshake, and the legacy one if that is refused or ignored, or
// if the server says that it has sessions too. It stays modern where they bring nothing: a
// server without a session id cannot match the answers to its questions, and one with the
// tasks extension can ask through its tasks.
func (s *session) agree(ctx context.Context) error {
	probe, cancel := context.WithTimeoutCause(ctx, 2*s.connection.opts.ProbeTimeout, errNoHandshake)
	defer cancel()
	s.beginModern()
	modern, err := s.sendDiscover(probe)
	switch {
	case err != nil && (ctx.Err() != nil || noOtherEraHelps(err)):
		return err
	case err != nil:
		return s.initialize(ctx)
	case offersSessions(modern):
		s.beginLegacy()
		legacy, err := s.sendInitialize(probe)
		if err == nil && (s.traits.HasSession == nil || s.traits.HasSession()) {
			return s.acceptLegacy(ctx, legacy)
		}
	}
	return s.acceptModern(modern)
}

var errNoHandshake = errors.New("no answer to the handshake")

// offersSessions reports whether a modern server wants to be used in the sessions era.
func offersSessions(discovered json.RawMessage) bool {
	capabilities, _ := rawjson.Get(discovered, "capabilities")
	extensions, _ := rawjson.Get(capabilities, "extensions")
	if _, tasks := rawjson.Get(extensions, wire.ExtensionTasks); tasks {
		return false
	}
	return slices.ContainsFunc(wire.Revisions(), func(revision string) bool {
		return wire.EraOf(revision) == wire.Legacy && listContains(discovered, "supportedVersions", revision)
	})
}

// noOtherEraHelps reports whether a handshake in the other era would fail too.
func noOtherEraHelps(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.auth()
	}
	return errors.Is(err, ErrNotSent) && !isAnswer(err)
}

// isAnswer reports whether err is one that the server sent.
func isAnswer(err error) bool {
	var answered *wire.Error
	return errors.As(err, &answered)
}

// abandon closes a session whose handshake failed, and adds to the error what the
// process wrote to its standard error. The reason why a process ended has it already.
func (s *session) abandon(err error) error {
	s.close()
	if s.traits.Stderr == nil || errors.Is(err, errProcess) {
		return err
	}
	if text := s.traits.Stderr(); text != "" {
		return fmt.Errorf("%w; its standard error: %s", err, text)
	}
	return fmt.Errorf("%w; it wrote nothing to its standard error", err)
}

// dial opens a transport and a session over it, before the handshake.
func (a *connectAttempt) dial(ctx context.Context, e endpoint) (*session, error) {
	s := newSession(a.connection, e)
	var err error
	if s.intercept, err = a.interceptor(); err != nil {
		s.life.end(err)
		return nil, notSent(err)
	}
	ready := make(chan struct{})
	hooks := a.hooks
	hooks.Received = func(call wire.ID, m wire.Message) {
		<-ready // a server may send messages before dial returns
		s.handleMessage(call, m)
	}
	transport, err := a.opts.dial(ctx, a.spec, e, hooks)
	if err != nil {
		s.life.end(err)
		close(ready)
		return nil, err
	}
	s.transport, s.traits = transport, transport.Traits()
	close(ready)
	if s.traits.Work != nil {
		s.life.run(func(ctx context.Context) { a.yieldTurn(ctx, s.traits.Work) })
	}
	s.life.run(func(context.Context) {
		<-transport.Done()
		s.failPending(transport.Err())
	})
	return s, nil
}

// discover performs the modern handshake.
func (s *session) discover(ctx context.Context) error {
	s.beginModern()
	result, err := s.sendDiscover(ctx)
	if err != nil {
		return err
	}
	return s.acceptModern(result)
}

// beginModern makes further requests modern ones.
func (s *session) beginModern() {
	s.era, s.revision = wire.Modern, wire.NewestModern
	s.transport.SetRevision(s.revision)
}

// sendDiscover sends the request of the modern handshake.
func (s *session) sendDiscover(ctx context.Context) (json.RawMessage, error) {
	handshake := &outcall{method: wire.MethodDiscover, params: json.RawMessage(`{}`), timeout: handshakeTimeout, handshake: true}
	result, err := s.request(ctx, handshake)
	var refused *wire.Error
	if errors.As(err, &refused) && refused.Code == wire.CodeUnsupportedRevision && listContains(refused.Data, "supported", wire.NewestModern) {
		result, err = s.request(ctx, handshake) // it refused a revision that it lists as supported: try once more
	}
	if err == nil && !listContains(result, "supportedVersions", wire.NewestModern) {
		err = wire.Errorf(wire.CodeUnsupportedRevision, "server does not speak %s", wire.NewestModern)
	}
	return result, err
}

// acceptModern ends the modern handshake.
func (s *session) acceptModern(result json.RawMessage) error {
	s.beginModern()
	s.setServerInfo(result)
	return nil
}

// handshakeTimeout is longer than any start: the context of the attempt ends the
// handshake.
const handshakeTimeout = 24 * time.Hour

// listContains reports whether the list under key contains text.
func listContains(object json.RawMessage, key, text string) bool {
	raw, _ := rawjson.Get(object, key)
	items, _ := rawjson.Items(raw)
	return slices.ContainsFunc(items, func(item json.RawMessage) bool { t, ok := rawjson.Text(item); return ok && t == text })
}

// initialize performs the legacy handshake.
func (s *session) initialize(ctx context.Context) error {
	s.beginLegacy()
	result, err := s.sendInitialize(ctx)
	if err != nil {
		return err
	}
	return s.acceptLegacy(ctx, result)
}

// beginLegacy makes further requests legacy ones.
func (s *session) beginLegacy() {
	s.era, s.revision = wire.Legacy, ""
	s.transport.SetRevision("")
}

// sendInitialize sends the request of the legacy handshake.
func (s *session) sendInitialize(ctx context.Context) (json.RawMessage, error) {
	params := json.RawMessage(`{"protocolVersion":"` + wire.NewestLegacy + `","capabilities":` + string(allCapabilities) + `}`)
	params = rawjson.Set(params, "clientInfo", s.connection.clientInfo)
	return s.request(ctx, &outcall{method: wire.MethodInitialize, params: params, timeout: handshakeTimeout, handshake: true})
}

// acceptLegacy ends the legacy handshake.
func (s *session) acceptLegacy(ctx context.Context, result json.RawMessage) error {
	s.revision, _ = rawjson.GetText(result, "protocolVersion")
	if wire.EraOf(s.revision) != wire.Legacy {
		return fmt.Errorf("server wants revision %q, which is not supported", excerpt([]byte(s.revision)))
	}
	s.setServerInfo(result)
	s.transport.SetRevision(s.revision)
	if err := s.transport.Send(ctx, wire.Notification(wire.NoteInitialized, nil)); err != nil {
		return fmt.Errorf("send %s: %w", wire.NoteInitialized, err)
	}
	if s.traits.Listen != nil {
		s.traits.Listen(ctx)
	}
	return nil
}

// setServerInfo stores what the server says about itself in its handshake.
func (s *session) setServerInfo(result json.RawMessage) {
	s.capabilities, _ = rawjson.Get(result, "capabilities")
	s.instructions, _ = rawjson.Get(result, "instructions")
	if s.serverInfo, _ = rawjson.Get(result, "serverInfo"); s.serverInfo == nil {
		s.serverInfo, _ = rawjson.Get(wire.Meta(result), wire.MetaServerInfo)
	}
}

func clientInfo(name, version string) json.RawMessage {
	info := rawjson.AppendText([]byte(`{"name":`), name)
	return append(rawjson.AppendText(append(info, `,"version":`...), version), '}')
}
