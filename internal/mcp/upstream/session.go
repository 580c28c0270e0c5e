package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// newSession is a server that has been greeted: requests in, answers out, and what
// the server wants in between brought to whoever made the call.
type session struct {
	opts      *Options
	transport Transport
	endpoint  endpoint
	notify    func(method string, params json.RawMessage) // what belongs to no call
	life      *lifetime
	// failed takes why a caller found the session to be of no more use.
	failed chan error

	era          wire.Era
	revision     string
	capabilities json.RawMessage
	serverInfo   json.RawMessage
	instructions json.RawMessage

	ids          atomic.Int64
	lastReceived atomic.Int64 // when the server last said something, in Unix nanoseconds
	logLevelSet  atomic.Pointer[string]
	// answeredCaller tells that a caller got an answer.
	answeredCaller atomic.Bool

	vigil clock.Vigil // over its calls

	questionSlots chan struct{} // one for each request of the server under way

	mu            sync.Mutex
	acked         func() // what to do when a subscription is acknowledged
	flights       map[wire.ID]*flight
	questions     map[wire.ID]context.CancelFunc // requests of the server we are answering
	subscriptions map[string]bool                // resources to listen for, modern only
	resubscribe   context.CancelCauseFunc        // ends the subscription that is open; nil when none is
}

// request is one thing to ask of the server.
type request struct {
	method    string
	params    json.RawMessage // their _meta does not count
	meta      json.RawMessage // the caller's, or nil
	trace     traceContext
	label     *spanLabel   // of its spans; nil where it is not known yet
	about     string       // the tool, prompt or resource, where it is known
	caller    *tool.Caller // may be nil
	headers   []Header
	timeout   time.Duration // readUntil a sign of progress
	maxTime   time.Duration // at all; zero means timeout
	handshake bool          // belongs to the handshake: kept whole, and never cancelled

	failed bool // the tool that was called said so in its result
}

// maxRounds is how often a modern server may ask back within one call.
const maxRounds = 16

// do sends a request and waits for its result, answering what a modern server
// questions back by asking the caller and sending the request again.
//
//nolint:contextcheck // patience is ctx, and ends with it
func (s *session) do(ctx context.Context, r *request) (json.RawMessage, error) {
	p := newPatience(ctx, &s.vigil, r.timeout, max(r.maxTime, r.timeout))
	defer p.stop()
	params := r.params
	for range maxRounds {
		result, err := s.exchange(p, r, params)
		if err != nil {
			return nil, err
		}
		if rawjson.Lacks(result, "resultType") && !r.handshake { // as all results of the older era do
			return wire.StripProtocol(result), nil
		}
		switch kind, _ := rawjson.GetText(result, "resultType"); kind {
		case wire.ResultInputRequired:
			if params, err = s.provideInput(p, r, result); err != nil {
				return nil, err
			}
		case wire.ResultTask:
			return nil, errors.New("server answered with a task, which was not asked for")
		default:
			if r.handshake {
				return result, nil
			}
			return wire.ToLegacy(result), nil
		}
	}
	return nil, errors.New("server keeps asking for more input")
}

// exchange is one request and its response.
func (s *session) exchange(ctx *patience, r *request, params json.RawMessage) (json.RawMessage, error) {
	id := wire.IntID(s.ids.Add(1))
	f := &flight{draft: draft{request: r, session: s, id: id, params: params}, clock: ctx, last: -1}
	s.depart(id, f)
	defer s.land(id, f)

	answer, err := s.carry(ctx, &f.draft)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrNotSent) && !r.handshake {
			s.cancelRequest(id)
		}
		return nil, err
	}
	s.lastReceived.Store(time.Now().UnixNano())
	if r.caller != nil {
		s.answeredCaller.Store(true)
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	if !rawjson.IsObject(answer.Result) {
		return nil, errors.New("result is not an object: " + excerpt(answer.Result))
	}
	return answer.Result, nil
}

// carry sends what is drafted and waits for its answer.
func (s *session) carry(ctx context.Context, d *draft) (wire.Message, error) {
	if link, ok := s.transport.(*httpTransport); ok {
		return link.carry(ctx, d)
	}
	return s.transport.Call(ctx, d.outgoing())
}

// logLevel is from which level on the server is to tell what it logs.
func (s *session) logLevel() string {
	if set := s.logLevelSet.Load(); set != nil {
		return *set
	}
	return "info"
}

// cancelRequest tells the server that nobody waits for that answer any more, where
// hanging up does not tell it already.
func (s *session) cancelRequest(id wire.ID) {
	if h, ok := s.transport.(interface{ CancelsOnDisconnect() bool }); ok && h.CancelsOnDisconnect() {
		return
	}
	params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":"the caller gave up"}`)
	s.life.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_ = s.transport.Send(ctx, wire.Notification(wire.NoteCancelled, params)) // a lost one costs the server only work
	})
}

// checkHealth asks the server for a sign of life. A server that refuses to give one is
// alive.
func (s *session) checkHealth(ctx context.Context, limit time.Duration) error {
	method := wire.MethodPing
	if s.era == wire.Modern {
		method = wire.MethodDiscover
	}
	_, err := s.do(ctx, &request{method: method, params: json.RawMessage(`{}`), timeout: limit})
	var answered *wire.Error
	var status *statusError
	if errors.As(err, &answered) || errors.As(err, &status) && !status.auth() && status.Code < 500 {
		return nil
	}
	return err
}

// healthInterval is how long the server may be silent until its health is checked.
func (s *session) healthInterval() time.Duration {
	if l, ok := s.transport.(interface{ HealthInterval() time.Duration }); ok {
		return min(l.HealthInterval(), s.opts.HealthInterval)
	}
	return s.opts.HealthInterval
}

// sinceLastReceived is how long the server has said nothing.
func (s *session) sinceLastReceived() time.Duration {
	return time.Since(time.Unix(0, s.lastReceived.Load()))
}

// activeCalls is how many requests are under way for callers.
func (s *session) activeCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, f := range s.flights {
		if f.caller != nil {
			n++
		}
	}
	return n
}

// hasCapability tells whether the server declared a capability, as in "tools" or
// "tools.listChanged".
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
	s.vigil.Rest()
}

// ground gives up every request under way: its link is gone.
func (s *session) ground(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		f.clock.Cancel(why)
	}
}

func (s *session) depart(id wire.ID, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flights[id] = f
}

func (s *session) land(id wire.ID, f *flight) {
	s.mu.Lock()
	delete(s.flights, id)
	s.mu.Unlock()
	f.land()
}
