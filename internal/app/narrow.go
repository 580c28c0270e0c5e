package app

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/hub"
	"github.com/luanette/luanette/internal/tool"
	"github.com/luanette/luanette/internal/wire"
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

// Request relays a request about what exists for who asks. Those whose tools are
// listed one by one have nothing else there.
func (p narrowedPeer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	who := access.Of(ctx)
	if method == wire.MethodToolsList {
		page, err := p.Peer.Request(ctx, method, params, caller)
		if err != nil || !who.Narrowed() && p.all.catalog.ShowsAll(who) {
			return page, err
		}
		return p.sift(ctx, page), nil
	}
	if !who.Narrowed() {
		return p.Peer.Request(ctx, method, params, caller)
	}
	switch method {
	case wire.MethodToolsCall:
		name, _ := wire.GetText(params, "name")
		if !who.Sees(p.name, name) {
			err := fault.New(fault.ToolNotFound, "no tool %q", name).WithHint("tools/list shows those there are")
			args, _ := wire.Get(params, "arguments")
			p.all.turnedAway(ctx, tool.Call{Ref: tool.Ref{Space: p.name, Name: name}, Args: args, Caller: caller}, err)
			return nil, err
		}
	case wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodPromptsGet, wire.MethodComplete:
		if len(who.Tools) > 0 {
			return nil, fault.New(fault.Denied, "%s is for some tools only", who.Title())
		}
	case wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodPromptsList:
		if len(who.Tools) > 0 {
			return json.RawMessage(`{"resources":[],"resourceTemplates":[],"prompts":[]}`), nil
		}
	}
	return p.Peer.Request(ctx, method, params, caller)
}

// sift takes out of a page of tools what does not exist for somebody.
func (p narrowedPeer) sift(ctx context.Context, page json.RawMessage) json.RawMessage {
	raw, _ := wire.Get(page, "tools")
	items, _ := wire.Items(raw)
	kept := []byte{'['}
	for _, item := range items {
		if name, _ := wire.GetText(item, "name"); !p.all.catalog.Shows(ctx, tool.Ref{Space: p.name, Name: name}) {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, item...)
	}
	return wire.Set(page, "tools", append(kept, ']'))
}
