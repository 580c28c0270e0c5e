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

// handleMessage takes requests and notifications of the server. call is the id of
// the request on whose stream the message came, or empty. It must not block,
// because it runs on the goroutine that reads the stream.
func (s *session) handleMessage(call wire.ID, m wire.Message) {
	s.lastReceived.Store(time.Now().UnixNano())
	if m.IsRequest() {
		select {
		case s.questionSlots <- struct{}{}:
		default:
			return // too many questions at once: this one is not answered
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
		if p := s.pendingCall(wire.ID(token)); p != nil {
			p.handleProgress(m.Params)
		}
	case wire.NoteMessage:
		if p, _ := s.callFor(call, func(c *tool.Caller) bool { return c.Log != nil }); p != nil {
			p.handleLog(m.Params)
			return
		}
		s.notify(m.Method, m.Params)
	case wire.NoteCancelled:
		id, _ := rawjson.Get(m.Params, "requestId")
		s.cancelQuestion(wire.ID(id))
	case wire.NoteListenAcknowledged:
		s.mu.Lock()
		acked := s.acked
		s.mu.Unlock()
		acked()
	default:
		s.notify(m.Method, wire.StripProtocol(m.Params))
	}
}

func (s *session) pendingCall(id wire.ID) *pendingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id]
}

// callFor finds the call that a message of the server belongs to: the one on whose
// stream it came, or, if that is unknown, one of the only client that can handle it.
// If there are several clients it returns no call, and a count above 1.
func (s *session) callFor(id wire.ID, canHandle func(*tool.Caller) bool) (p *pendingCall, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		if p := s.pending[id]; p != nil && p.caller != nil && canHandle(p.caller) {
			return p, 1
		}
		return nil, 0
	}
	return s.callOfOnlyClient(canHandle)
}

// callOfOnlyClient is a pending call of the only client that can handle it; s.mu is held.
func (s *session) callOfOnlyClient(canHandle func(*tool.Caller) bool) (p *pendingCall, count int) {
	for _, candidate := range s.pending {
		if candidate.caller == nil || !canHandle(candidate.caller) {
			continue
		}
		if p == nil || !sameClient(p.caller, candidate.caller) {
			count++
		}
		p = candidate
	}
	if count > 1 {
		return nil, count
	}
	return p, count
}

// sameClient reports whether two callers are the same client.
func sameClient(a, b *tool.Caller) bool { return a == b || a.Client != nil && a.Client == b.Client }

// answerQuestion handles a request of the server and sends the response.
func (s *session) answerQuestion(ctx context.Context, call wire.ID, m wire.Message) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.questions[m.ID] = cancel
	s.mu.Unlock()
	result, err := s.reply(ctx, call, m)
	s.mu.Lock()
	delete(s.questions, m.ID)
	s.mu.Unlock()
	if ctx.Err() != nil || errors.Is(err, errCallOver) {
		return // the server cancelled it, the session ended, or the server knows that the call is over
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if err := s.transport.Send(ctx, wire.Answer(m.ID, result, err)); err != nil {
		s.opts.Log.DebugContext(ctx, "response to a server was not sent", "method", m.Method, "error", err)
	}
}

func (s *session) cancelQuestion(id wire.ID) {
	s.mu.Lock()
	cancel := s.questions[id]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// reply is the result of a request of the server, which the caller of the call
// that it belongs to gives.
func (s *session) reply(ctx context.Context, call wire.ID, m wire.Message) (json.RawMessage, error) {
	switch m.Method {
	case wire.MethodPing:
		return nil, nil
	case wire.MethodRoots, wire.MethodSample, wire.MethodElicit:
	default:
		return nil, wire.Errorf(wire.CodeMethodNotFound, "no method %q", m.Method)
	}
	question := tool.Question{Method: m.Method, Params: wire.StripProtocol(m.Params)}
	if m.Method == wire.MethodRoots {
		return s.replyRoots(ctx, call, question)
	}
	p, count := s.callFor(call, func(c *tool.Caller) bool { return canAnswer(c, m.Method) })
	if task := relatedTask(m.Params); task != "" {
		p, count = s.callForTask(task, m.Method), 1
	}
	switch {
	case count > 1:
		return nil, wire.Errorf(wire.CodeInternal, "%s: %d calls are in progress, and the request does not say to which it belongs", m.Method, count)
	case p == nil:
		return declineQuestion(m.Method)
	}
	return p.ask(ctx, question)
}

// relatedTask is the task that a question of a server belongs to, or empty.
func relatedTask(params json.RawMessage) string {
	related, _ := rawjson.Get(wire.Meta(params), wire.MetaRelatedTask)
	id, _ := rawjson.GetText(related, "taskId")
	return id
}

// callForTask is the request for the result of a task, if its caller can answer the
// question; else nil.
func (s *session) callForTask(task, method string) *pendingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if p.task == task && canAnswer(p.caller, method) {
			return p
		}
	}
	return nil
}

// declineQuestion is the protocol's response of a client that cannot answer.
func declineQuestion(method string) (json.RawMessage, error) {
	if method == wire.MethodElicit {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return nil, wire.Errorf(-1, "the caller of this call cannot be asked")
}
