package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// cacheable are the methods whose modern results say how long they stay good.
func cacheable(method string) bool {
	switch method {
	case wire.MethodDiscover, wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList,
		wire.MethodResourceTemplates, wire.MethodResourcesRead:
		return true
	}
	return false
}

// resultKeys are the keys of a result that belong to an era.
var resultKeys = []string{"resultType", "ttlMs", "cacheScope", "_meta"}

// completeResult gives a result the form of the client's era: in the modern one it
// tells its type, who made it and how long it stays good; in the older one none
// of that. Everything else stays as it came, byte for byte.
func (t *request) completeResult(result json.RawMessage) json.RawMessage {
	var has [4]json.RawMessage
	rawjson.Pick(result, resultKeys, has[:])
	if t.era == wire.Legacy {
		return t.completeLegacy(result, has)
	}
	add := make([]byte, 0, 256)
	if has[0] == nil {
		add = append(add, `"resultType":"complete",`...)
	}
	if cacheable(t.method) {
		// Nothing is promised: lists change when an upstream says so, and differ by
		// who asks when the front door knows its users.
		if has[1] == nil {
			add = append(add, `"ttlMs":0,`...)
		}
		if has[2] == nil {
			add = append(add, `"cacheScope":"private",`...)
		}
	}
	if has[3] != nil {
		result = t.ep.setServerInfo(result)
	} else if info := t.ep.serverInfo(); info != nil {
		add = append(append(append(add, `"_meta":{"`+wire.MetaServerInfo+`":`...), info...), `},`...)
	}
	return prepend(result, add)
}

func (t *request) completeLegacy(result json.RawMessage, has [4]json.RawMessage) json.RawMessage {
	if has[0] != nil {
		result = rawjson.DeleteFunc(result, isModernKey)
	}
	if has[3] != nil && t.method != wire.MethodTasksResult { // that one says whose result it is
		result = wire.StripProtocol(result)
	}
	return result
}

func isModernKey(key []byte) bool {
	return string(key) == "resultType" || string(key) == "ttlMs" || string(key) == "cacheScope"
}

// prepend puts members, each followed by a comma, before those of an object.
func prepend(object json.RawMessage, members []byte) json.RawMessage {
	if len(members) == 0 {
		return object
	}
	rest := bytes.TrimLeft(object, " \t\r\n")[1:]
	out := append(make([]byte, 0, 1+len(members)+len(rest)), '{')
	out = append(out, members...)
	if bytes.TrimLeft(rest, " \t\r\n")[0] == '}' {
		out = out[:len(out)-1] // no member follows the last comma
	}
	return append(out, rest...)
}

// setServerInfo sets who made a modern result, and takes out what a server before us said
// of itself.
func (e *endpoint) setServerInfo(result json.RawMessage) json.RawMessage {
	meta := rawjson.DeleteFunc(wire.Meta(result), func(key []byte) bool {
		return string(key) != wire.MetaSubscription && wire.IsProtocol(key)
	})
	if info := e.serverInfo(); info != nil {
		meta = rawjson.Set(meta, wire.MetaServerInfo, info)
	}
	return wire.SetMeta(result, meta)
}

// adapt gives an error the codes of the client's era.
func (t *request) adapt(ctx context.Context, err error) error {
	if ctx.Err() != nil && fault.CodeOf(err) == fault.Cancelled {
		err = context.Cause(ctx)
	}
	e := *wire.ErrorFrom(err)
	switch {
	case e.Code == 0:
		e.Code = wire.CodeInternal
	case t.era == wire.Modern && e.Code == wire.CodeResourceNotFound:
		e.Code = wire.CodeInvalidParams
	case t.era == wire.Modern && e.Code == wire.CodeURLElicitationMissing:
		e.Code = wire.CodeInternal
	case t.method == wire.MethodResourcesRead && fault.CodeOf(err) == fault.NotFound:
		e.Data = rawjson.SetText(e.Data, "uri", t.name)
		if t.era == wire.Legacy {
			e.Code = wire.CodeResourceNotFound
		}
	}
	if e.Code == wire.CodeInternal && ctx.Err() == nil {
		t.ep.hub.log.WarnContext(ctx, "request failed", "method", t.method, "name", t.name, "error", err)
	}
	return &e
}

// toolFailure turns the error of a tool call into what the model may read: a
// result that says it failed. Protocol errors, unknown tools and cancellation
// stay errors.
func toolFailure(ctx context.Context, name string, err error) (json.RawMessage, error) {
	var protocol *wire.Error
	switch {
	case errors.As(err, &protocol), ctx.Err() != nil:
		return nil, err
	case fault.CodeOf(err) == fault.ToolNotFound:
		e := wire.ErrorFrom(err)
		e.Message = "Unknown tool: " + name
		if hint := fault.HintOf(err); hint != "" { // few clients show more than the message
			e.Message += "; " + hint
		}
		return nil, e
	}
	return tool.Failure(err).Raw, nil
}
