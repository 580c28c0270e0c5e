package hub

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// postLegacy serves a message of the sessions era: initialize, or a message within a
// session.
func (e *endpoint) postLegacy(w http.ResponseWriter, r *http.Request, m wire.Message) {
	if m.Method == wire.MethodInitialize && m.IsRequest() {
		e.openSession(w, r, m)
		return
	}
	s, ok := e.sessionOf(w, r, m.ID)
	if !ok {
		return
	}
	switch {
	case m.IsRequest():
		e.request(w, r, s, m)
	case m.IsNotification():
		if !s.notified(m) {
			e.forward(s, m)
		}
		accepted(w)
	default:
		if !s.deliver(m) {
			e.forward(s, m)
		}
		accepted(w)
	}
}

// sessionOf finds the session a request belongs to, or refuses it.
func (e *endpoint) sessionOf(w http.ResponseWriter, r *http.Request, id wire.ID) (*session, bool) {
	name := r.Header.Get(wire.HeaderSession)
	if name == "" {
		refuse(w, http.StatusBadRequest, id, wire.Errorf(wire.CodeInvalidRequest, "header %s is missing: begin with initialize", wire.HeaderSession))
		return nil, false
	}
	who := e.hub.principal(r)
	s := e.sessions.find(name, who)
	if s == nil {
		var err error
		if s, err = e.loadSession(r.Context(), name, who); err != nil {
			e.hub.log.WarnContext(r.Context(), "cannot look up session of another node", "error", err)
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, id, wire.Errorf(wire.CodeInternal, "the session cannot be looked up at the moment: try again with the same session"))
			return nil, false
		}
	}
	if s == nil || s.shared {
		refuse(w, http.StatusNotFound, id, wire.Errorf(wire.CodeInvalidRequest, "no such session: begin again with initialize"))
		return nil, false
	}
	w.Header().Set(wire.HeaderSession, s.id)
	return s, true
}

// openSession answers initialize. The session exists only when that succeeds.
func (e *endpoint) openSession(w http.ResponseWriter, r *http.Request, m wire.Message) {
	s := newSession(r.Context(), e, e.hub.principal(r), false)
	s.menu = e.menuOf(r)
	resp := newResponse(m.ID, "")
	req := s.newRequest(m, resp)
	req.header, req.network = traceHeadersOf(r.Header), "tcp"
	req.start(r.Context(), resp)
	select {
	case <-resp.done():
	case <-r.Context().Done():
		req.cancel(errDisconnected)
		return
	}
	if version, _ := s.negotiated(); version != "" {
		if err := e.sessions.add(r.Context(), s); err != nil {
			refuse(w, http.StatusServiceUnavailable, m.ID, err)
			return
		}
		e.saveSession(r.Context(), s)
		w.Header().Set(wire.HeaderSession, s.id)
	}
	writeJSON(w, resp.status, resp.answer)
}

// request serves one request of a session. A client that loses the connection can
// reconnect for the rest if it has seen an event id; otherwise its request is cancelled.
func (e *endpoint) request(w http.ResponseWriter, r *http.Request, s *session, m wire.Message) {
	resp := s.newResponse(m.ID)
	resp.jsonOnly = !readsStreams(r)
	req := s.newRequest(m, resp)
	req.header, req.network = traceHeadersOf(r.Header), "tcp"
	// Revisions before 2025-11-25 have no events without data.
	prime := req.version >= wire.Revision2511
	(&inlineRun{hub: e.hub, w: w, r: r, request: req, response: resp, prime: prime, started: func() { s.store(resp.out) }}).serve()
}

// newRequest makes a request of a session's message.
func (s *session) newRequest(m wire.Message, resp *response) *request {
	s.meetClient(m)
	version, caps := s.negotiated()
	meta := wire.Meta(m.Params)
	token, _ := rawjson.Get(meta, wire.MetaProgressToken)
	resp.token, resp.level = progressToken(token), level(s.level.Load())
	name, _ := wire.NameOf(m.Method, m.Params)
	return &request{
		ep: s.ep, method: m.Method, params: m.Params, meta: meta, name: name, menu: s.menu, era: wire.Legacy,
		version: version, caps: caps, who: s.who, session: s,
	}
}

// notified handles a client's notification. It returns false if the request to cancel is
// not one of this node.
func (s *session) notified(m wire.Message) bool {
	switch m.Method {
	case wire.NoteInitialized:
		s.ready.Store(true)
		return !s.loaded // the node that opened it waits for this
	case wire.NoteCancelled:
		if id, ok := rawjson.Get(m.Params, "requestId"); ok {
			return s.cancel(requestID(id))
		}
	case wire.NoteRootsChanged:
		if u := s.ep.hub.opts.Upstreams; u != nil {
			u.RootsChanged(s)
		}
	}
	return true
}

// requestID is an id in params, in the form that messages have it.
func requestID(raw json.RawMessage) wire.ID {
	if text, ok := rawjson.Text(raw); ok {
		return wire.TextID(text)
	}
	return wire.ID(raw)
}

// get opens the stream of messages that belong to no request, or resumes a stream that
// was interrupted.
func (e *endpoint) get(w http.ResponseWriter, r *http.Request) {
	if wire.EraOf(r.Header.Get(wire.HeaderRevision)) == wire.Modern {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, "", wire.Errorf(wire.CodeInvalidRequest, "use POST with subscriptions/listen"))
		return
	}
	if !accepts(r, wire.ContentEvent) {
		refuse(w, http.StatusNotAcceptable, "", wire.Errorf(wire.CodeInvalidRequest, "Accept must list text/event-stream"))
		return
	}
	s, ok := e.sessionOf(w, r, "")
	if !ok {
		return
	}
	last := r.Header.Get(wire.HeaderLastEventID)
	out, me, err := s.reopen(last)
	if err != nil {
		refuse(w, http.StatusBadRequest, "", err)
		return
	}
	s.identify(r.Context())
	s.readers.Add(1)
	defer s.readers.Add(-1)
	events := e.hub.newEventWriter(w, out.name)
	version, _ := s.negotiated()
	if last == "" && version >= wire.Revision2511 {
		events.prime(out.position())
	}
	e.hub.copyStream(r.Context(), events, out, me)
	s.touch(time.Now())
}

// reopen finds the stream to read: the session's own, or the one that an event id belongs
// to, after that event.
func (s *session) reopen(last string) (*stream, reader, error) {
	if last == "" || s.eventsOfOtherNode(last) {
		return s.main, s.main.attach(), nil
	}
	missing := wire.Errorf(wire.CodeInvalidParams, "events after %q are no longer stored", last)
	name, number, ok := parseEventID(last)
	out := s.find(name)
	if !ok || out == nil {
		return nil, nil, missing
	}
	me, err := out.attachAfter(number)
	if err != nil {
		return nil, nil, missing
	}
	return out, me, nil
}

// delete ends a session at its client's request.
func (e *endpoint) delete(w http.ResponseWriter, r *http.Request) {
	s, ok := e.sessionOf(w, r, "")
	if !ok {
		return
	}
	e.deleteSession(r.Context(), s)
	e.sessions.remove(r.Context(), s)
	w.WriteHeader(http.StatusNoContent)
}

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
	address := netguard.Base(r) + "/mcp/message?" + url.Values{"sessionId": {s.id}}.Encode()
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
