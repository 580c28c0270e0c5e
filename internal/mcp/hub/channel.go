package hub

import (
	"context"
	"net/http"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// received takes a message of a client that has one channel for everything.
// Requests run at the same time; their answers come as they are ready.
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
		return // a task that was parked goes on
	}
	req.header, req.network = traceHeadersOf(header), network
	req.start(ctx, resp)
	if m.Method == wire.MethodInitialize {
		<-req.finished // what stands behind it on the channel relies on what was agreed
	}
}

// channelRequest makes a request's task. Requests of both eras may come on the same
// channel: one that states its revision is of the modern one.
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
		}
		return req, err
	}
	if version, _ := s.negotiated(); version == "" && m.Method != wire.MethodInitialize && m.Method != wire.MethodPing {
		return nil, wire.Errorf(wire.CodeInvalidRequest, "begin with initialize")
	}
	return s.newRequest(m, resp), nil
}
