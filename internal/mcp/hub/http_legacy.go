package hub

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
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
	case wire.NoteCancelled:
		if id, ok := rawjson.Get(m.Params, "requestId"); ok {
			return s.cancel(requestID(id))
		}
	case wire.NoteRootsChanged:
		s.rootsChanged()
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
