package hub

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
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

// guarded refuses requests that a page of another site made a browser send: on a loopback
// address the Host must be a loopback name, and an Origin must be the hub's own or an
// allowed one.
func (h *Hub) guarded(next http.Handler) http.Handler {
	browsers := netguard.Browsers{Origins: h.opts.Origins, Proxies: h.opts.Proxies}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, err := browsers.Origin(r)
		if err != nil {
			refuse(w, http.StatusForbidden, "", wire.Errorf(wire.CodeInvalidRequest, "%s; %s", err.Error(), fault.HintOf(err)))
			return
		}
		if !netguard.AnswerPage(w, r, origin) {
			next.ServeHTTP(w, r)
		}
	})
}

// principal identifies who made the request.
func (h *Hub) principal(r *http.Request) string {
	if h.opts.Principal == nil {
		return ""
	}
	return h.opts.Principal(r)
}

// wellKnown are the paths where clients look for an authorization server before they
// connect.
var wellKnown = []string{"/.well-known/", "/mcp/.well-known/"}

func noAuthorization(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusNotFound,
		[]byte(`{"error":"not_found","error_description":"This MCP server does not require authentication"}`))
}

// postModern serves a message of the modern era, which is complete in itself. Closing the
// connection cancels it.
func (e *endpoint) postModern(w http.ResponseWriter, r *http.Request, m wire.Message) {
	switch {
	case m.IsNotification():
		accepted(w)
		return
	case m.IsResponse():
		refuse(w, http.StatusBadRequest, m.ID, wire.Errorf(wire.CodeInvalidRequest, "clients must not send responses"))
		return
	}
	about, err := readModern(m, r.Header)
	if err == nil && m.Method == wire.MethodToolsCall {
		err = e.checkParamHeaders(r, about.name, m.Params)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, m.ID, err)
		return
	}
	if node := e.hub.waitsAtNode(about.state); node != "" {
		e.resumeAtNode(w, r, node, m)
		return
	}
	e.serveModern(w, r, about, m)
}

// serveModern serves a request, or resumes the earlier one that it brings input for.
func (e *endpoint) serveModern(w http.ResponseWriter, r *http.Request, about modernMeta, m wire.Message) {
	resp := newResponse(m.ID, "")
	resp.modern, resp.jsonOnly, resp.token, resp.level = true, !readsStreams(r), about.token, about.level
	req, err := e.modernRequest(about, m, e.hub.principal(r), resp)
	if err == nil && req.isNew() {
		req.header, req.network = traceHeadersOf(r.Header), "tcp"
		req.meetClient(e.menuOf(r))
		(&inlineRun{hub: e.hub, w: w, r: r, request: req, response: resp}).serve() //nolint:contextcheck // its context is the request's
		return
	}
	if err != nil {
		resp.finish(nil, err, false)
	}
	if gone := e.hub.writeResponse(w, r, resp, false, nil); gone && req != nil {
		req.disconnected(r.Context(), resp)
	}
}

// modernRequest makes a request, which is not yet started, or resumes the one that waits
// for this input.
func (e *endpoint) modernRequest(about modernMeta, m wire.Message, who string, resp *response) (*request, error) {
	if state, ok := rawjson.Text(about.state); ok {
		_, state = e.hub.untag(state)
		p, err := e.hub.pending.claim(state, e.binding(who, m.Method, m.Params), time.Now())
		if err != nil {
			return nil, err
		}
		p.resume(resp, about.answers)
		return p.task, nil
	}
	return &request{
		ep: e, method: m.Method, params: m.Params, meta: about.meta, name: about.name, era: wire.Modern,
		version: about.revision, caps: about.caps, who: who, supplied: about.answers,
	}, nil
}

// modernMeta is what a modern request states in its params.
type modernMeta struct {
	name     string          // of the tool, prompt, resource or task; may be empty
	named    bool            // the method requires the name in a header
	meta     json.RawMessage // its _meta, or nil
	state    json.RawMessage // the ticket of an earlier request that waits for input
	answers  json.RawMessage // the input for it
	revision string
	caps     json.RawMessage
	token    json.RawMessage
	level    level
}

var (
	modernParams = []string{"_meta", "requestState", "inputResponses"}
	modernKeys   = []string{
		wire.MetaRevision, wire.MetaClientCapabilities, wire.MetaLogLevel, wire.MetaProgressToken}
)

// readModern reads a request's _meta and checks that it is complete, that the headers
// match it, and that its revision is supported. header is nil on transports without
// headers.
func readModern(m wire.Message, header http.Header) (modernMeta, error) {
	var params [3]json.RawMessage
	rawjson.Pick(m.Params, modernParams, params[:])
	var fields [4]json.RawMessage
	rawjson.Pick(params[0], modernKeys, fields[:])
	about := modernMeta{
		meta: params[0], state: params[1], answers: params[2],
		caps: fields[1], token: progressToken(fields[3]), level: levelNone,
	}
	if !rawjson.IsObject(about.meta) {
		about.meta = nil
	}
	about.name, about.named = wire.NameOf(m.Method, m.Params)
	var ok bool
	if about.revision, ok = rawjson.Text(fields[0]); !ok {
		if said := header.Get(wire.HeaderRevision); said != "" && wire.EraOf(said) == wire.Unknown {
			return about, unsupported(said)
		}
		return about, wire.Errorf(wire.CodeInvalidParams, "_meta needs %q, a string", wire.MetaRevision)
	}
	if header != nil {
		if err := checkHeaders(header, m.Method, &about); err != nil {
			return about, err
		}
	}
	if wire.EraOf(about.revision) != wire.Modern {
		return about, unsupported(about.revision)
	}
	if !rawjson.IsObject(about.caps) {
		return about, wire.Errorf(wire.CodeInvalidParams, "_meta needs %q, an object", wire.MetaClientCapabilities)
	}
	if fields[2] != nil {
		name, _ := rawjson.Text(fields[2])
		if about.level, ok = parseLevel(name); !ok {
			return about, wire.Errorf(wire.CodeInvalidParams, "unknown log level %s", fields[2])
		}
	}
	return about, nil
}

// progressToken is the token as the client wrote it, or nil if it is not valid.
func progressToken(raw json.RawMessage) json.RawMessage {
	if _, ok := rawjson.Text(raw); ok {
		return raw
	}
	if _, ok := rawjson.Number(raw); ok {
		return raw
	}
	return nil
}

func unsupported(revision string) error {
	return wire.Errorf(wire.CodeUnsupportedRevision, "unsupported protocol version").
		WithData(map[string]any{"supported": wire.Revisions(), "requested": revision})
}

// checkHeaders compares the headers of a request with its body.
func checkHeaders(header http.Header, method string, about *modernMeta) error {
	if err := sameHeader(header, wire.HeaderRevision, about.revision); err != nil {
		return err
	}
	if err := sameHeader(header, wire.HeaderMethod, method); err != nil || !about.named {
		return err
	}
	return sameHeader(header, wire.HeaderName, about.name)
}

func sameHeader(header http.Header, name, want string) error {
	values := header.Values(name)
	if len(values) == 0 {
		return wire.Errorf(wire.CodeHeaderMismatch, "header %s is missing", name)
	}
	said := strings.TrimSpace(values[0])
	if name == wire.HeaderName {
		decoded, err := wire.DecodeHeader(said)
		if err != nil {
			return wire.Errorf(wire.CodeHeaderMismatch, "header %s is not valid base64", name)
		}
		said = decoded
	}
	if len(values) > 1 || said != want {
		return wire.Errorf(wire.CodeHeaderMismatch, "header %s says %q, the body says %q", name, strings.Join(values, ", "), want)
	}
	return nil
}

// checkParamHeaders compares the arguments that a tool has repeated in headers.
func (e *endpoint) checkParamHeaders(r *http.Request, name string, params json.RawMessage) error {
	mirrors, err := wire.HeaderParams(e.backend.inputSchema(r.Context(), name))
	if len(mirrors) == 0 || err != nil { // a tool whose annotations are not allowed has none
		return nil //nolint:nilerr // see above
	}
	args, _ := rawjson.Get(params, "arguments")
	for _, mirror := range mirrors {
		values := r.Header.Values(mirror.Header)
		said := ""
		if len(values) > 0 {
			said = strings.TrimSpace(values[0])
		}
		if _, given := mirror.Argument(args); given != (len(values) == 1) || !mirror.Matches(said, args) {
			return wire.Errorf(wire.CodeHeaderMismatch, "header %s does not match the argument %s",
				mirror.Header, strings.Join(mirror.Path, "."))
		}
	}
	return nil
}
