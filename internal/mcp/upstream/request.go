package upstream

import (
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// request is a request to a server, before a session gives it an id and _meta.
type request struct {
	method    string
	params    json.RawMessage // _meta in them is ignored
	meta      json.RawMessage // the caller's _meta, or nil
	trace     traceContext
	label     *spanLabel   // nil if it is not known yet
	about     string       // the tool, prompt or resource, if known
	caller    *tool.Caller // may be nil
	headers   []Header
	timeout   time.Duration // without progress
	maxTime   time.Duration // in total; zero means timeout
	task      bool          // it may start a task, or is about one
	taskTTL   time.Duration // of the task it may start; zero: not said
	handshake bool          // its result is returned unchanged, and it is never cancelled

	sentOver *session // the last one; nil: it was not sent
	id       wire.ID  // in that session
	failed   bool     // the result of the tool has isError set
}

// outgoing encodes the request with its id and with the _meta of this hop. params
// are those of this round.
func (s *session) outgoing(r *request, id wire.ID, params json.RawMessage) Outgoing {
	bare := wire.Request(id, r.method, nil)
	text := bare.Append(make([]byte, 0, encodedSize(r, params)))
	text = append(text[:len(text)-1], `,"params":`...)
	start := len(text)
	text = s.appendParams(text, r, id, params)
	end := len(text)
	rawjson.Flatten(text[start:end])
	text = append(text, '}')
	out := Outgoing{Message: wire.Request(id, r.method, text[start:end:end]), Encoded: text, About: r.about}
	if s.endpoint.usesHeaders() {
		out.Headers = append(r.trace.headers(r.meta), r.headers...)
	}
	return out
}

// encodedSize is an upper estimate for most requests.
func encodedSize(r *request, params json.RawMessage) int {
	size := len(params) + len(r.meta) + 512
	if r.caller != nil {
		size += len(r.caller.Capabilities)
	}
	return size
}

// appendParams writes params with _meta: the caller's keys that concern the
// server, and our own.
func (s *session) appendParams(out []byte, r *request, id wire.ID, params json.RawMessage) []byte {
	out = rawjson.AppendMembers(out, params, func(key []byte) bool { return string(key) == "_meta" })
	bare := len(out)
	out = rawjson.AppendKey(out, "_meta")
	start := len(out)
	out = rawjson.AppendMembers(out, r.meta, func(key []byte) bool {
		return string(key) == wire.MetaProgressToken || wire.IsProtocol(key) || r.trace.replaces(key)
	})
	out = r.trace.append(out)
	if r.caller != nil {
		out = append(rawjson.AppendKey(out, wire.MetaProgressToken), id...)
	}
	if s.era == wire.Modern {
		out = s.appendProtocol(out, r)
	}
	if len(out) == start+1 { // only the opening brace
		return append(out[:bare], '}')
	}
	return append(out, "}}"...)
}

// appendProtocol writes the _meta keys that every modern request has.
func (s *session) appendProtocol(out []byte, r *request) []byte {
	out = rawjson.AppendText(rawjson.AppendKey(out, wire.MetaRevision), s.revision)
	out = append(rawjson.AppendKey(out, wire.MetaClientInfo), s.opts.clientInfo...)
	out = append(rawjson.AppendKey(out, wire.MetaClientCapabilities), s.declaredFor(r)...)
	if r.caller != nil && r.caller.Log != nil {
		out = rawjson.AppendText(rawjson.AppendKey(out, wire.MetaLogLevel), s.logLevel())
	}
	return out
}
