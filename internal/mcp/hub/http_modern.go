package hub

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

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
	mirrors := e.backend.headerParams(r.Context(), name)
	if len(mirrors) == 0 {
		return nil
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
