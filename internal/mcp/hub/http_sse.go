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

// serveSSE serves the transport of revision 2024-11-05: one stream for everything the
// server sends, and a URL to post to.
func (h *Hub) serveSSE(w http.ResponseWriter, r *http.Request) {
	if !allowMethod(w, r, http.MethodGet) {
		return
	}
	if h.isClosing() {
		refuse(w, http.StatusServiceUnavailable, "", errClosing)
		return
	}
	if err := h.local.checkMenu(r); err != nil {
		refuse(w, http.StatusBadRequest, "", err)
		return
	}
	s := newSession(r.Context(), h.local, h.principal(r), true)
	s.menu = h.local.menuOf(r)
	s.setID(h.tag(s.id)) // messages posted to other nodes are sent to this one
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

// serveSSEMessage handles a posted message. The answer is sent on the stream.
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
	errChannelNodeGone = wire.Errorf(wire.CodeInvalidRequest, "the node of this session's stream has stopped: connect to /mcp/sse again")
)

// postToNode passes a posted message to the node that has the session's stream. It is
// served there on behalf of the principal that posted it.
func (h *Hub) postToNode(w http.ResponseWriter, r *http.Request, node, id string) {
	m, ok := h.readMessage(w, r)
	if !ok {
		return
	}
	who := principal.Of(r.Context())
	back, err := h.local.sendToNode(r.Context(), node, remoteMessage{Who: h.principal(r), Session: hashed(id), Message: m.Append(nil),
		Principal: &who, Header: traceHeadersOf(r.Header)})
	switch {
	case r.Context().Err() != nil: // the client has disconnected
	case fault.CodeOf(err) == fault.NotFound:
		refuse(w, http.StatusNotFound, m.ID, errChannelNodeGone)
	case err != nil:
		h.log.WarnContext(r.Context(), "cannot pass a message to the node of its stream", "node", node, "error", err)
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, m.ID, wire.Errorf(wire.CodeInternal, "the node that has this session's stream cannot be reached: try again"))
	case string(back) != taken:
		refuse(w, http.StatusNotFound, m.ID, errNoChannel)
	default:
		accepted(w)
	}
}

// taken is the answer of a node that has the stream of a message.
const taken = "taken"

// receiveRemote handles a message that was posted to another node, if its session is here
// and belongs to the same principal.
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

// allowMethod refuses all other methods.
func allowMethod(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	refuse(w, http.StatusMethodNotAllowed, "", wire.Errorf(wire.CodeInvalidRequest, "use %s", method))
	return false
}
