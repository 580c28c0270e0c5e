package upstream

import (
	"context"
	"encoding/json"
	"errors"
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
	opts      *Options
	transport Transport
	endpoint  endpoint
	peer      peer                                        // without its revision
	notify    func(method string, params json.RawMessage) // takes notifications that belong to no call
	source    rootsSource                                 // nil: there are no roots but those of callers
	intercept *interceptor                                // nil: requests go straight to the transport
	life      *lifetime
	failed    chan error // takes the reason when a caller finds that the session is unusable

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

	questionSlots chan struct{} // bounds the server's requests in progress

	mu            sync.Mutex
	acked         func() // called when the server acknowledges a subscription
	pending       map[wire.ID]*pendingCall
	questions     map[wire.ID]context.CancelFunc // the server's requests in progress
	subscriptions map[string]bool                // subscribed resources, modern only
	resubscribe   context.CancelCauseFunc        // ends the open subscription; nil if there is none
}

// newSession prepares a session before its handshake.
func newSession(opts *Options, e endpoint, notify func(string, json.RawMessage)) *session {
	return &session{
		opts: opts, endpoint: e, notify: notify, life: newLifetime(), failed: make(chan error, 1),
		questionSlots: make(chan struct{}, maxQuestions), acked: func() {},
		pending: map[wire.ID]*pendingCall{}, questions: map[wire.ID]context.CancelFunc{}, subscriptions: map[string]bool{},
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
	_, err := s.request(ctx, &request{method: method, params: json.RawMessage(`{}`), timeout: timeout})
	var answered *wire.Error
	var status *statusError
	if errors.As(err, &answered) || errors.As(err, &status) && !status.auth() && status.Code < 500 {
		return nil
	}
	return err
}

// healthInterval is how long the server may be silent before its health is checked.
func (s *session) healthInterval() time.Duration {
	if t, ok := s.transport.(interface{ HealthInterval() time.Duration }); ok {
		return min(t.HealthInterval(), s.opts.HealthInterval)
	}
	return s.opts.HealthInterval
}

// sinceLastReceived is how long the server has been silent.
func (s *session) sinceLastReceived() time.Duration {
	return time.Since(s.lastMessage())
}

// activeCalls is the number of pending calls that have a caller.
func (s *session) activeCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.pending {
		if p.caller != nil {
			n++
		}
	}
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
