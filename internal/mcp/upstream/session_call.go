package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// maxRounds is how often a modern server may ask for input within one call.
const maxRounds = 16

// request sends a request within its timeout and returns the result. It speaks
// the legacy protocol to its callers: it translates methods that a modern server
// does not have, and when a modern server asks for input, it asks the caller and
// sends the request again.
func (s *session) request(ctx context.Context, r *request) (result json.RawMessage, err error) {
	if result, done, err := s.translate(ctx, r); done {
		return result, err
	}
	if ctx.Err() != nil {
		return nil, notSent(context.Cause(ctx))
	}
	began := time.Now()
	ctx, timeout := startCallTimeout(ctx, r.timeout, max(r.maxTime, r.timeout))
	defer func() {
		timeout.stop(err != nil)
		s.noteOutcome(ctx, r, began, result, err)
	}()
	params := r.params
	if r.task {
		params = s.taskParams(r)
	}
	for range maxRounds {
		result, err := s.exchange(ctx, timeout, r, params)
		if err != nil {
			return nil, err
		}
		if rawjson.Lacks(result, "resultType") && !r.handshake { // as legacy results do
			return wire.StripProtocol(result), nil
		}
		switch kind, _ := rawjson.GetText(result, "resultType"); {
		case kind == wire.ResultInputRequired:
			if params, err = s.provideInput(ctx, timeout, r, result); err != nil {
				return nil, err
			}
		case kind == wire.ResultTask && r.task:
			return result, nil
		case kind == wire.ResultTask:
			return nil, errors.New("server answered with a task, although none was requested")
		case r.handshake:
			return result, nil
		default:
			return wire.ToLegacy(result), nil
		}
	}
	return nil, errors.New("server keeps asking for more input")
}

// translate answers legacy requests that modern servers do not have.
func (s *session) translate(ctx context.Context, r *request) (result json.RawMessage, done bool, err error) {
	if r.handshake || s.era != wire.Modern {
		return nil, false, nil
	}
	switch r.method {
	case wire.MethodPing:
		err = s.checkHealth(ctx, r.timeout)
	case wire.MethodSetLevel:
		level, _ := rawjson.GetText(r.params, "level")
		s.logLevelSet.Store(&level)
	case wire.MethodSubscribe, wire.MethodUnsubscribe:
		uri, _ := rawjson.GetText(r.params, "uri")
		s.setResourceSubscription(uri, r.method == wire.MethodSubscribe)
	default:
		return nil, false, nil
	}
	return json.RawMessage(`{}`), true, err
}

// exchange sends one message and waits for its response.
func (s *session) exchange(ctx context.Context, timeout *callTimeout, r *request, params json.RawMessage) (json.RawMessage, error) {
	id := wire.IntID(s.ids.Add(1))
	r.sentOver, r.id = s, id
	p := &pendingCall{caller: r.caller, timeout: timeout, progress: -1}
	if r.method == wire.MethodTasksResult {
		p.task = r.about
	}
	s.addPending(id, p)
	defer s.finishPending(id, p)

	var answer wire.Message
	var err error
	if s.intercept == nil {
		answer, err = s.transport.Call(ctx, s.outgoing(r, id, params))
	} else {
		answer, err = s.intercept.call(ctx, s, s.outgoing(r, id, params))
	}
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

func (s *session) addPending(id wire.ID, p *pendingCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[id] = p
}

func (s *session) finishPending(id wire.ID, p *pendingCall) {
	s.mu.Lock()
	delete(s.pending, id)
	s.mu.Unlock()
	p.finish()
}

// failPending ends every pending call, because the transport has ended.
func (s *session) failPending(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		p.timeout.cancel(reason)
	}
}

// cancelRequest notifies the server that the response is no longer needed, unless
// closing the HTTP request did so already.
func (s *session) cancelRequest(id wire.ID) {
	if t, ok := s.transport.(interface{ CancelsOnDisconnect() bool }); ok && t.CancelsOnDisconnect() {
		return
	}
	params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":"the caller gave up"}`)
	s.life.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_ = s.transport.Send(ctx, wire.Notification(wire.NoteCancelled, params)) // if it is lost, the server only works in vain
	})
}
