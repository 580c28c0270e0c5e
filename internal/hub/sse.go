package hub

import (
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/wire"
)

// serveSSE serves the transport of revision 2024-11-05: one stream for all the
// server says, and an address to post to.
func (h *Hub) serveSSE(w http.ResponseWriter, r *http.Request) {
	if !only(w, r, http.MethodGet) {
		return
	}
	if h.isClosing() {
		refuse(w, http.StatusServiceUnavailable, "", errClosing)
		return
	}
	s := newSession(h.own, h.principal(r), true)
	if err := h.own.sessions.add(r.Context(), s); err != nil {
		refuse(w, http.StatusServiceUnavailable, "", err)
		return
	}
	defer h.own.sessions.remove(r.Context(), s)
	s.readers.Add(1)
	events := h.newEventWriter(w, "")
	address := "/mcp/message?" + url.Values{"sessionId": {s.id}}.Encode()
	events.buf = wire.AppendEvent(events.buf, wire.Event{Name: "endpoint", Data: []byte(address)})
	h.pump(r.Context(), events, s.main, s.main.attach())
}

// serveSSEMessage takes what the client posts; answers come on the stream.
func (h *Hub) serveSSEMessage(w http.ResponseWriter, r *http.Request) {
	if !only(w, r, http.MethodPost) {
		return
	}
	id := r.URL.Query().Get("sessionId")
	if id == "" {
		id = r.URL.Query().Get("session_id")
	}
	s := h.own.sessions.find(id, h.principal(r))
	if s == nil || !s.shared {
		refuse(w, http.StatusNotFound, "", wire.Errorf(wire.CodeInvalidRequest, "no such session: connect to /mcp/sse first"))
		return
	}
	m, ok := h.readMessage(w, r)
	if !ok {
		return
	}
	s.received(r.Context(), m, r.Header, "tcp")
	accepted(w)
}

// only refuses every method but one.
func only(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	refuse(w, http.StatusMethodNotAllowed, "", wire.Errorf(wire.CodeInvalidRequest, "use %s", method))
	return false
}
