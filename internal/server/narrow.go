package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// reserved are our own tools that change what holds for everybody: which servers
// there are, and what scripts may do.
var reserved = []string{"mcp_connect", "mcp_disconnect", "approval_decide", "approval_forget"}

// isReserved tells tools that only administrators see.
func isReserved(ref tool.Ref) bool { return ref.Space == "" && slices.Contains(reserved, ref.Name) }

// narrowedPeer is an upstream seen whole by somebody who may not see all of it.
type narrowedPeer struct {
	hub.Peer
	name string
	all  *upstreams
}

// Call relays the call of a tool that exists for who asks.
func (p narrowedPeer) Call(ctx context.Context, call tool.Call, params json.RawMessage) (json.RawMessage, error) {
	who := principal.Of(ctx)
	params, err := plain(who, wire.MethodToolsCall, params)
	if err != nil {
		return nil, err
	}
	if !who.CanSee(p.name, call.Ref.Name) {
		err := fault.New(fault.ToolNotFound, "no tool %q", call.Ref.Name).WithHint("tools/list shows those there are")
		p.all.turnedAway(ctx, call, err)
		return nil, err
	}
	return p.Peer.Call(ctx, call, params)
}

// Request relays a request about what exists for who asks. Those whose tools are
// listed one by one have nothing else there.
func (p narrowedPeer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	who := principal.Of(ctx)
	params, err := plain(who, method, params)
	if err != nil {
		return nil, err
	}
	if method == wire.MethodToolsList {
		page, err := p.Peer.Request(ctx, method, params, caller)
		if err != nil || !who.Restricted() && p.all.catalog.ShowsAll(who) {
			return page, err
		}
		return p.sift(ctx, page), nil
	}
	if !who.Restricted() {
		return p.Peer.Request(ctx, method, params, caller)
	}
	switch method {
	case wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodPromptsList:
		if len(who.Tools) > 0 {
			return json.RawMessage(`{"resources":[],"resourceTemplates":[],"prompts":[]}`), nil
		}
	case wire.MethodPing, wire.MethodSetLevel, wire.MethodUnsubscribe:
	default:
		if len(who.Tools) > 0 {
			return nil, fault.New(fault.Denied, "%s is for some tools only", who.Title())
		}
	}
	return p.Peer.Request(ctx, method, params, caller)
}

// plain refuses what the server behind might read otherwise than we do, who decide by
// the name: some take the first of two keys, or one in other letters. Tasks there are
// all of the one connection we have, so that everybody would have everybody's: they
// are for those only who may have what others made.
func plain(who principal.Principal, method string, params json.RawMessage) (json.RawMessage, error) {
	if strings.HasPrefix(method, "tasks/") && !who.Admin() {
		return nil, wire.Errorf(wire.CodeMethodNotFound, "method not found: %s", method)
	}
	if method != wire.MethodToolsCall && method != wire.MethodPromptsGet {
		return params, nil
	}
	var seen [2]bool
	twice := ""
	params = rawjson.DeleteFunc(params, func(key []byte) bool {
		for i, known := range decisive {
			if bytes.EqualFold(key, known) {
				if seen[i] || !bytes.Equal(key, known) {
					twice = string(known)
				}
				seen[i] = true
			}
		}
		return !who.Admin() && bytes.EqualFold(key, taskKey)
	})
	if twice != "" {
		return nil, fault.New(fault.InvalidParams, "the params of %s can be read in two ways: %s", method, twice).
			WithHint("write %s once, in small letters", twice)
	}
	return params, nil
}

// decisive are the members of params that are decided by, and taskKey is the one that
// makes a task of a call.
var (
	decisive = [2][]byte{[]byte("name"), []byte("arguments")}
	taskKey  = []byte("task")
)

// sift takes out of a page of tools what does not exist for somebody.
func (p narrowedPeer) sift(ctx context.Context, page json.RawMessage) json.RawMessage {
	raw, _ := rawjson.Get(page, "tools")
	items, _ := rawjson.Items(raw)
	kept := []byte{'['}
	for _, item := range items {
		if name, _ := rawjson.GetText(item, "name"); !p.all.catalog.Shows(ctx, tool.Ref{Space: p.name, Name: name}) {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, item...)
	}
	return rawjson.Set(page, "tools", append(kept, ']'))
}
