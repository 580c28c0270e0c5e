package hub

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// serveSSE serves the transport of revision 2024-11-05: one stream for all the
// server says, and an address to post to.
func (h *Hub) serveSSE(w http.ResponseWriter, r *http.Request) {
	if !allowMethod(w, r, http.MethodGet) {
		return
	}
	if h.isClosing() {
		refuse(w, http.StatusServiceUnavailable, "", errClosing)
		return
	}
	s := newSession(h.local, h.principal(r), true)
	s.setID(h.tag(s.id)) // what is posted elsewhere finds its way here
	if err := h.local.sessions.add(r.Context(), s); err != nil {
		refuse(w, http.StatusServiceUnavailable, "", err)
		return
	}
	defer h.local.sessions.remove(r.Context(), s)
	s.readers.Add(1)
	events := h.newEventWriter(w, "")
	address := "/mcp/message?" + url.Values{"sessionId": {s.id}}.Encode()
	events.buf = sse.Append(events.buf, sse.Event{Name: "endpoint", Data: []byte(address)})
	h.copyStream(r.Context(), events, s.main, s.main.attach())
}

// serveSSEMessage takes what the client posts; answers come on the stream.
func (h *Hub) serveSSEMessage(w http.ResponseWriter, r *http.Request) {
	if !allowMethod(w, r, http.MethodPost) {
		return
	}
	id := r.URL.Query().Get("sessionId")
	if id == "" {
		id = r.URL.Query().Get("session_id")
	}
	if node, _ := h.untag(id); node != "" {
		h.postToNode(w, r, node, id)
		return
	}
	s := h.local.sessions.find(id, h.principal(r))
	if s == nil || !s.shared {
		refuse(w, http.StatusNotFound, "", errNoChannel)
		return
	}
	m, ok := h.readMessage(w, r)
	if !ok {
		return
	}
	s.received(r.Context(), m, r.Header, "tcp")
	accepted(w)
}

var (
	errNoChannel       = wire.Errorf(wire.CodeInvalidRequest, "no such session: connect to /mcp/sse first")
	errChannelNodeGone = wire.Errorf(wire.CodeInvalidRequest, "the node that had this session's stream is gone: connect to /mcp/sse again")
)

// postToNode has another node take what a client posted, which has its stream
// there. It is done as whoever posted it.
func (h *Hub) postToNode(w http.ResponseWriter, r *http.Request, node, id string) {
	m, ok := h.readMessage(w, r)
	if !ok {
		return
	}
	who := principal.Of(r.Context())
	back, err := h.local.sendToNode(r.Context(), node, remoteMessage{Who: h.principal(r), Session: hashed(id), Message: m.Append(nil),
		Principal: &who, Header: traceHeadersOf(r.Header)})
	switch {
	case r.Context().Err() != nil: // nobody is there to be told
	case fault.CodeOf(err) == fault.NotFound:
		refuse(w, http.StatusNotFound, m.ID, errChannelNodeGone)
	case err != nil:
		h.log.WarnContext(r.Context(), "a message did not reach the node that has its stream", "node", node, "error", err)
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, m.ID, wire.Errorf(wire.CodeInternal, "the node that has this session's stream cannot be reached: try again"))
	case string(back) != taken:
		refuse(w, http.StatusNotFound, m.ID, errNoChannel)
	default:
		accepted(w)
	}
}

// taken is what a node says that has a message's stream.
const taken = "taken"

// receiveRemote gives a message to the stream it was posted for, if that is here and
// whoever posted it has opened it.
func (h *Hub) receiveRemote(ctx context.Context, c remoteMessage, m wire.Message) []byte {
	for _, s := range h.local.sessions.list() {
		if s.shared && s.who == c.Who && hashed(s.id) == c.Session {
			s.touch(time.Now())
			s.received(principal.With(ctx, *c.Principal), m, c.Header, "tcp")
			return []byte(taken)
		}
	}
	return nil
}

// allowMethod refuses every method but one.
func allowMethod(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	refuse(w, http.StatusMethodNotAllowed, "", wire.Errorf(wire.CodeInvalidRequest, "use %s", method))
	return false
}
