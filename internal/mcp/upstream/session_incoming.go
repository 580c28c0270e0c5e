package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// handleMessage takes what the server says besides answers. It never blocks: it runs on
// the goroutine that reads the stream.
func (s *session) handleMessage(call wire.ID, m wire.Message) {
	s.lastReceived.Store(time.Now().UnixNano())
	if m.IsRequest() {
		select {
		case s.questionSlots <- struct{}{}:
		default:
			return // a server that asks without end is not answered without end
		}
		s.life.run(func(ctx context.Context) {
			defer func() { <-s.questionSlots }()
			s.answerQuestion(ctx, call, m)
		})
		return
	}
	switch m.Method {
	case wire.NoteProgress:
		token, _ := rawjson.Get(m.Params, wire.MetaProgressToken)
		if f := s.flight(wire.ID(token)); f != nil {
			f.progress(m.Params)
		}
	case wire.NoteMessage:
		if f, _ := s.flightOf(call, func(c *tool.Caller) bool { return c.Log != nil }); f != nil {
			f.log(m.Params)
			return
		}
		s.notify(m.Method, m.Params)
	case wire.NoteCancelled:
		id, _ := rawjson.Get(m.Params, "requestId")
		s.mu.Lock()
		cancel := s.questions[wire.ID(id)]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case wire.NoteListenAcknowledged:
		s.mu.Lock()
		acked := s.acked
		s.mu.Unlock()
		acked()
	default:
		s.notify(m.Method, wire.StripProtocol(m.Params))
	}
}

func (s *session) flight(id wire.ID) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flights[id]
}

// flightOf finds the call a message of the server belongs to: the one on whose
// stream it came, or, where that is unknown, the only one whose caller can deal
// with it. Of several it picks none: count says how many there were.
func (s *session) flightOf(call wire.ID, can func(*tool.Caller) bool) (f *flight, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call != "" {
		if f := s.flights[call]; f != nil && f.caller != nil && can(f.caller) {
			return f, 1
		}
		return nil, 0
	}
	for _, candidate := range s.flights {
		if candidate.caller != nil && can(candidate.caller) {
			f = candidate
			count++
		}
	}
	if count != 1 {
		return nil, count
	}
	return f, 1
}

// answerQuestion deals with a request of the server and responds to it.
func (s *session) answerQuestion(ctx context.Context, call wire.ID, m wire.Message) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.questions[m.ID] = cancel
	s.mu.Unlock()
	result, err := s.askForServer(ctx, call, m)
	s.mu.Lock()
	delete(s.questions, m.ID)
	s.mu.Unlock()
	if ctx.Err() != nil || errors.Is(err, errCallOver) {
		return // the server took it back, is gone, or hears that the call is cancelled
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if err := s.transport.Send(ctx, wire.Answer(m.ID, result, err)); err != nil {
		s.opts.Log.DebugContext(ctx, "answer to a server was lost", "method", m.Method, "error", err)
	}
}

func (s *session) askForServer(ctx context.Context, call wire.ID, m wire.Message) (json.RawMessage, error) {
	switch m.Method {
	case wire.MethodPing:
		return nil, nil
	case wire.MethodRoots, wire.MethodSample, wire.MethodElicit:
	default:
		return nil, wire.Errorf(wire.CodeMethodNotFound, "no method %q", m.Method)
	}
	f, count := s.flightOf(call, func(c *tool.Caller) bool { return canAnswer(c, m.Method) })
	switch {
	case count > 1:
		return nil, wire.Errorf(wire.CodeInternal, "%s: %d calls are under way and nothing says which one asks", m.Method, count)
	case f == nil:
		return declineQuestion(m.Method)
	}
	replies, err := f.ask(ctx, []tool.Question{{Method: m.Method, Params: wire.StripProtocol(m.Params)}})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// declineQuestion is what the protocol lets a client say that cannot help.
func declineQuestion(method string) (json.RawMessage, error) {
	switch method {
	case wire.MethodRoots:
		return json.RawMessage(`{"roots":[]}`), nil
	case wire.MethodElicit:
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return nil, wire.Errorf(-1, "nobody who could be asked takes part in this call")
}
