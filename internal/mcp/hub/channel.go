package hub

import (
	"context"
	"net/http"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// received handles a message of a client that has a single stream for all answers.
// Requests run concurrently and are answered as they finish.
func (s *session) received(ctx context.Context, m wire.Message, header http.Header, network string) {
	switch {
	case m.IsNotification():
		s.notified(m)
		return
	case m.IsResponse():
		s.deliver(m)
		return
	}
	resp := newSharedResponse(m.ID, s.main)
	req, err := s.channelRequest(m, resp)
	switch {
	case err != nil:
		resp.finish(nil, err, false)
		return
	case !req.isNew():
		return // a request that waited for input was resumed
	}
	req.header, req.network = traceHeadersOf(header), network
	req.start(ctx, resp)
	if m.Method == wire.MethodInitialize {
		<-req.finished // the messages after it rely on what it negotiates
	}
}

// channelRequest makes a request of a message. Both eras may use the same channel: a
// message that states its revision is of the modern one.
func (s *session) channelRequest(m wire.Message, resp *response) (*request, error) {
	if eraOf("", m) == wire.Modern {
		about, err := readModern(m, nil)
		if err != nil {
			return nil, err
		}
		resp.token, resp.level = about.token, about.level
		req, err := s.ep.modernRequest(about, m, s.who, resp)
		if err == nil && req.isNew() {
			req.session = s
			req.meetClient(s.menu)
		}
		return req, err
	}
	if version, _ := s.negotiated(); version == "" && m.Method != wire.MethodInitialize && m.Method != wire.MethodPing {
		return nil, wire.Errorf(wire.CodeInvalidRequest, "begin with initialize")
	}
	return s.newRequest(m, resp), nil
}
