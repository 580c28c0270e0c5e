package upstream

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// draft is a request to be written: with its id, and with the _meta that it has on
// this hop. A link that can writes it straight into what it sends.
type draft struct {
	*request
	session *session
	id      wire.ID
	params  json.RawMessage // of this round
}

// outgoing is the draft for links that take it as a message.
func (d *draft) outgoing() Outgoing {
	params := d.appendParams(make([]byte, 0, len(d.params)+len(d.meta)+512))
	out := Outgoing{Message: wire.Request(d.id, d.method, params), About: d.about}
	d.eachHeader(func(name, value string) bool {
		out.Headers = append(out.Headers, Header{name, value})
		return true
	})
	return out
}

// size is about how long it will be.
func (d *draft) size() int {
	size := len(d.params) + len(d.meta)
	if d.caller != nil {
		size += len(d.caller.Capabilities)
	}
	return size
}

// append writes the message.
func (d *draft) append(out []byte) []byte {
	bare := wire.Request(d.id, d.method, nil)
	out = bare.Append(out)
	out = append(out[:len(out)-1], `,"params":`...)
	start := len(out)
	out = append(d.appendParams(out), '}')
	rawjson.Flatten(out[start:])
	return out
}

// appendParams writes the params with the _meta of this hop: of what the caller said
// that which concerns the server, and what we say.
func (d *draft) appendParams(out []byte) []byte {
	out = rawjson.AppendMembers(out, d.params, func(key []byte) bool { return string(key) == "_meta" })
	bare := len(out)
	out = rawjson.AppendKey(out, "_meta")
	start := len(out)
	out = rawjson.AppendMembers(out, d.meta, func(key []byte) bool {
		return string(key) == wire.MetaProgressToken || wire.IsProtocol(key) || d.trace.says(key)
	})
	out = d.trace.append(out)
	if d.caller != nil {
		out = append(rawjson.AppendKey(out, wire.MetaProgressToken), d.id...)
	}
	if d.session.era == wire.Modern {
		out = d.appendProtocol(out)
	}
	if len(out) == start+1 { // nothing but a brace
		return append(out[:bare], '}')
	}
	return append(out, "}}"...)
}

// appendProtocol writes what every modern request says.
func (d *draft) appendProtocol(out []byte) []byte {
	out = rawjson.AppendText(rawjson.AppendKey(out, wire.MetaRevision), d.session.revision)
	out = append(rawjson.AppendKey(out, wire.MetaClientInfo), d.session.opts.clientInfo...)
	out = append(rawjson.AppendKey(out, wire.MetaClientCapabilities), capabilitiesOf(d.caller)...)
	if d.caller != nil && d.caller.Log != nil {
		out = rawjson.AppendText(rawjson.AppendKey(out, wire.MetaLogLevel), d.session.logLevel())
	}
	return out
}

// eachHeader goes through the headers that the request has besides those of its link.
func (d *draft) eachHeader(yield func(name, value string) bool) bool {
	for name, value := range d.trace.headers(d.meta) {
		if !yield(name, value) {
			return false
		}
	}
	for _, h := range d.headers {
		if !yield(h.Name, h.Value) {
			return false
		}
	}
	return true
}
