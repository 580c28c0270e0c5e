package wire

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// Keys inside _meta. Those with ProtocolPrefix belong to one hop and are never
// relayed.
const (
	ProtocolPrefix = "io.modelcontextprotocol/"

	MetaRevision           = ProtocolPrefix + "protocolVersion"
	MetaClientInfo         = ProtocolPrefix + "clientInfo"
	MetaClientCapabilities = ProtocolPrefix + "clientCapabilities"
	MetaServerInfo         = ProtocolPrefix + "serverInfo"
	MetaLogLevel           = ProtocolPrefix + "logLevel"
	MetaSubscription       = ProtocolPrefix + "subscriptionId"
	MetaRelatedTask        = ProtocolPrefix + "related-task" // legacy

	// ExtensionTasks is declared by clients and servers that support tasks.
	ExtensionTasks = ProtocolPrefix + "tasks"

	// ExtensionApps is declared by clients that show the pages of tools: MCP Apps.
	ExtensionApps = ProtocolPrefix + "ui"

	// ExtensionSkills is declared by servers that offer skills.
	ExtensionSkills = ProtocolPrefix + "skills"

	MetaProgressToken = "progressToken"

	MetaTraceParent = "traceparent"
	MetaTraceState  = "tracestate"
	MetaBaggage     = "baggage"
)

// IsProtocol tells whether a key of _meta is the protocol's own.
func IsProtocol(key []byte) bool {
	return len(key) >= len(ProtocolPrefix) && string(key[:len(ProtocolPrefix)]) == ProtocolPrefix
}

// Meta is the _meta object of params or of a result, or nil.
func Meta(object json.RawMessage) json.RawMessage {
	meta, ok := rawjson.Get(object, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return nil
	}
	return meta
}

// SetMeta returns object with meta as its _meta, and without one when meta is
// empty.
func SetMeta(object, meta json.RawMessage) json.RawMessage {
	switch {
	case rawjson.Lacks(object, `"_meta"`) && rawjson.IsEmptyObject(meta):
		return object
	case rawjson.IsEmptyObject(meta):
		return rawjson.Delete(object, "_meta")
	case rawjson.Lacks(object, `"_meta"`):
		return rawjson.Extend(object, append(append(make([]byte, 0, len(meta)+8), `"_meta":`...), meta...))
	}
	return rawjson.Set(object, "_meta", meta)
}

// StripProtocol returns object with the protocol's own keys taken out of its
// _meta, and without _meta when nothing else was in it. An object that has none
// comes back as it is.
func StripProtocol(object json.RawMessage) json.RawMessage {
	if rawjson.Lacks(object, ProtocolPrefix) {
		return object
	}
	meta := Meta(object)
	switch own, others := count(meta); {
	case own == 0:
		return object
	case others == 0:
		return rawjson.Delete(object, "_meta")
	}
	return rawjson.Set(object, "_meta", rawjson.DeleteFunc(meta, IsProtocol))
}

// ToLegacy returns a modern result in the form of the sessions era: without its type, and
// without the protocol's own keys in its _meta, as StripProtocol does.
func ToLegacy(result json.RawMessage) json.RawMessage {
	var mixed json.RawMessage // a _meta of which something stays
	metas := 0
	bare := rawjson.Without(result, func(key, value []byte) bool {
		switch string(key) {
		case "resultType":
			return true
		case "_meta":
			metas++
			own, others := count(value)
			if own > 0 && others > 0 {
				mixed = value
			}
			return own > 0 && others == 0
		}
		return false
	})
	switch {
	case metas > 1: // the last one counts, which takes another pass to find
		return StripProtocol(rawjson.Delete(result, "resultType"))
	case mixed != nil:
		return rawjson.Set(bare, "_meta", rawjson.DeleteFunc(mixed, IsProtocol))
	}
	return bare
}

// count returns how many keys of a _meta are the protocol's own and how many are not.
func count(meta json.RawMessage) (own, others int) {
	m := rawjson.Walk(meta)
	for m.Next() {
		if IsProtocol(m.Name()) {
			own++
		} else {
			others++
		}
	}
	if !m.Closed {
		return 0, 0
	}
	return own, others
}

// Carrier reads and writes trace context in a _meta object. It has the shape of
// OpenTelemetry's TextMapCarrier; a nil Meta is an empty one.
type Carrier struct{ Meta json.RawMessage }

// Get is the text under key, or "".
func (c *Carrier) Get(key string) string {
	text, _ := rawjson.GetText(c.Meta, key)
	return text
}

// Set puts text under key.
func (c *Carrier) Set(key, text string) {
	if !rawjson.Lacks(c.Meta, key) {
		c.Meta = rawjson.SetText(c.Meta, key, text)
		return
	}
	member := append(rawjson.AppendText(make([]byte, 0, len(key)+len(text)+8), key), ':')
	c.Meta = rawjson.Extend(c.Meta, rawjson.AppendText(member, text))
}

// Keys lists what is there.
func (c *Carrier) Keys() []string {
	var keys []string
	rawjson.Each(c.Meta, func(key string, _ json.RawMessage) bool {
		keys = append(keys, key)
		return true
	})
	return keys
}
