package app

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/catalog"
	"github.com/luanette/luanette/internal/hub"
	"github.com/luanette/luanette/internal/tool"
	"github.com/luanette/luanette/internal/wire"
)

// limitedPeer is an upstream seen whole whose calls keep the limits that all calls
// keep: those of the key, and those of the upstream.
type limitedPeer struct {
	hub.Peer
	name    string
	catalog *catalog.Catalog
}

// Request relays a request, a call once there is room for it.
func (p limitedPeer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	if method != wire.MethodToolsCall {
		return p.Peer.Request(ctx, method, params, caller)
	}
	name, _ := wire.GetText(params, "name")
	result, err := p.catalog.Limited(ctx, tool.Call{Ref: tool.Ref{Space: p.name, Name: name}}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		raw, err := p.Peer.Request(ctx, method, params, caller)
		return tool.Result{Raw: raw}, err
	})
	return result.Raw, err
}
