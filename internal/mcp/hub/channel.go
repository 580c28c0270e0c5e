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
	rd := newSharedResponse(m.ID, s.main)
	t, err := s.channelRequest(m, rd)
	switch {
	case err != nil:
		rd.finish(nil, err, false)
		return
	case !t.isNew():
		return // a task that was parked goes on
	}
	t.header, t.network = traceHeadersOf(header), network
	t.start(ctx, rd)
	if m.Method == wire.MethodInitialize {
		<-t.finished // what stands behind it on the channel relies on what was agreed
	}
}

// channelRequest makes a request's task. Requests of both eras may come on the same
// channel: one that states its revision is of the modern one.
func (s *session) channelRequest(m wire.Message, rd *response) (*request, error) {
	if eraOf("", m) == wire.Modern {
		about, err := readModern(m, nil)
		if err != nil {
			return nil, err
		}
		rd.token, rd.level = about.token, about.level
		t, err := s.ep.modernRequest(about, m, s.who, rd)
		if err == nil && t.isNew() {
			t.session = s
		}
		return t, err
	}
	if version, _ := s.negotiated(); version == "" && m.Method != wire.MethodInitialize && m.Method != wire.MethodPing {
		return nil, wire.Errorf(wire.CodeInvalidRequest, "begin with initialize")
	}
	return s.newRequest(m, rd), nil
}
