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

// cacheable tells whether results of a method say how long they may be cached, in the
// modern era.
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

// completeResult gives a result the form of the client's era. In the modern era it has
// its type, the server's name and how long it may be cached; in the sessions era it has
// none of them. Everything else stays as it is, byte for byte.
func (req *request) completeResult(result json.RawMessage) json.RawMessage {
	var has [4]json.RawMessage
	rawjson.Pick(result, resultKeys, has[:])
	if req.era == wire.Legacy {
		return req.completeLegacy(result, has)
	}
	add := make([]byte, 0, 256)
	if has[0] == nil {
		add = append(add, `"resultType":"complete",`...)
	}
	if cacheable(req.method) {
		// Nothing may be cached: lists change with the upstreams and differ between
		// callers.
		if has[1] == nil {
			add = append(add, `"ttlMs":0,`...)
		}
		if has[2] == nil {
			add = append(add, `"cacheScope":"private",`...)
		}
	}
	if has[3] != nil {
		result = req.ep.setServerInfo(result)
	} else if info := req.ep.serverInfo(); info != nil {
		add = append(append(append(add, `"_meta":{"`+wire.MetaServerInfo+`":`...), info...), `},`...)
	}
	return prepend(result, add)
}

func (req *request) completeLegacy(result json.RawMessage, has [4]json.RawMessage) json.RawMessage {
	if has[0] != nil {
		result = rawjson.DeleteFunc(result, isModernKey)
	}
	if has[3] != nil && req.method != wire.MethodTasksResult { // its _meta names the task
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

// setServerInfo sets the server's name in the _meta of a modern result, in place of what
// an upstream set.
func (e *endpoint) setServerInfo(result json.RawMessage) json.RawMessage {
	meta := rawjson.DeleteFunc(wire.Meta(result), func(key []byte) bool {
		return string(key) != wire.MetaSubscription && wire.IsProtocol(key)
	})
	if info := e.serverInfo(); info != nil {
		meta = rawjson.Set(meta, wire.MetaServerInfo, info)
	}
	return wire.SetMeta(result, meta)
}

// adapt gives an error the code of the client's era.
func (req *request) adapt(ctx context.Context, err error) error {
	if ctx.Err() != nil && fault.CodeOf(err) == fault.Cancelled {
		err = context.Cause(ctx)
	}
	e := *wire.ErrorFrom(err)
	switch {
	case e.Code == 0:
		e.Code = wire.CodeInternal
	case req.era == wire.Modern && e.Code == wire.CodeResourceNotFound:
		e.Code = wire.CodeInvalidParams
	case req.era == wire.Modern && e.Code == wire.CodeURLElicitationMissing:
		e.Code = wire.CodeInternal
	case req.method == wire.MethodResourcesRead && fault.CodeOf(err) == fault.NotFound:
		e.Data = rawjson.SetText(e.Data, "uri", req.name)
		if req.era == wire.Legacy {
			e.Code = wire.CodeResourceNotFound
		}
	}
	if e.Code == wire.CodeInternal && ctx.Err() == nil {
		req.ep.hub.log.WarnContext(ctx, "request failed", "method", req.method, "name", req.name, "error", err)
	}
	return &e
}

// toolFailure turns the error of a tool call into a result with isError, which the model
// can read. Protocol errors, unknown tools and cancellation stay errors.
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
