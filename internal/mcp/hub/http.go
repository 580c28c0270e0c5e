package hub

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// ServeHTTP serves Streamable HTTP, both eras at the same URL.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.hub.isClosing() {
		refuse(w, http.StatusServiceUnavailable, "", errClosing)
		return
	}
	switch r.Method {
	case http.MethodPost:
		e.post(w, r)
	case http.MethodGet:
		e.get(w, r)
	case http.MethodDelete:
		e.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "", wire.Errorf(wire.CodeInvalidRequest, "use POST, GET or DELETE"))
	}
}

func (e *endpoint) post(w http.ResponseWriter, r *http.Request) {
	m, ok := e.hub.readMessage(w, r)
	if !ok {
		return
	}
	if err := e.checkMenu(r); err != nil {
		refuse(w, http.StatusBadRequest, m.ID, err)
		return
	}
	if eraOf(r.Header.Get(wire.HeaderRevision), m) == wire.Modern {
		e.postModern(w, r, m)
	} else {
		e.postLegacy(w, r, m) //nolint:contextcheck // its context is the request's
	}
}

// eraOf tells which era a posted message belongs to. A message that states its revision
// is of the modern era. So is one with an unknown revision in the header: the answer of
// that era lists the revisions that the hub supports.
func eraOf(header string, m wire.Message) wire.Era {
	if header != "" && wire.EraOf(header) != wire.Legacy {
		return wire.Modern
	}
	if m.Method != "" && !rawjson.Lacks(m.Params, wire.MetaRevision) {
		if _, stated := rawjson.Get(wire.Meta(m.Params), wire.MetaRevision); stated {
			return wire.Modern
		}
	}
	return wire.Legacy
}

// readMessage reads the posted message, or refuses it.
func (h *Hub) readMessage(w http.ResponseWriter, r *http.Request) (m wire.Message, ok bool) {
	if wire.MediaType(r.Header.Get("Content-Type")) != wire.ContentJSON {
		refuse(w, http.StatusUnsupportedMediaType, "", wire.Errorf(wire.CodeInvalidRequest, "Content-Type must be application/json"))
		return m, false
	}
	if !accepts(r, wire.ContentJSON) && !accepts(r, wire.ContentEvent) {
		refuse(w, http.StatusNotAcceptable, "",
			wire.Errorf(wire.CodeInvalidRequest, "Accept must list application/json and text/event-stream"))
		return m, false
	}
	body, err := readBody(w, r, h.opts.Limits.Body)
	if err != nil {
		refuseBody(w, err)
		return m, false
	}
	m, err = wire.Parse(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, m.ID, err)
		return m, false
	}
	return m, true
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if size := r.ContentLength; size > 0 && size <= limit { // net/http reads no more than that
		body := make([]byte, size)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

// refuseBody answers a message that could not be read.
func refuseBody(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		refuse(w, http.StatusRequestEntityTooLarge, "",
			wire.Errorf(wire.CodeInvalidRequest, "message is larger than %d bytes", large.Limit))
		return
	}
	refuse(w, http.StatusBadRequest, "", wire.Errorf(wire.CodeParse, "message could not be read"))
}

// accepts tells whether the client accepts a content type. Without an Accept header it
// accepts everything.
func accepts(r *http.Request, kind string) bool {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if header == "" || header == acceptsUsual {
		return true
	}
	major, _, _ := strings.Cut(kind, "/")
	for part := range strings.SplitSeq(header, ",") {
		name, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case kind, "*/*", major + "/*":
			return true
		}
	}
	return false
}

// acceptsUsual is the Accept header that most MCP clients send.
const acceptsUsual = wire.ContentJSON + ", " + wire.ContentEvent

// readsStreams tells whether the response may be an event stream.
func readsStreams(r *http.Request) bool {
	return r.Header.Get("Accept") != "" && accepts(r, wire.ContentEvent)
}

// refuse answers with an error before a request was made of the message.
func refuse(w http.ResponseWriter, status int, id wire.ID, err error) {
	m := wire.Answer(id, nil, err)
	writeJSON(w, status, m.Append(nil))
}

func accepted(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }
