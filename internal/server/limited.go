package server

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// limitedPeer is an upstream seen whole whose calls keep the limits that all calls
// keep: those of the key, and those of the upstream.
type limitedPeer struct {
	hub.Peer
	catalog *catalog.Catalog
}

// Call relays a call once there is room for it.
func (p limitedPeer) Call(ctx context.Context, call tool.Call, params json.RawMessage) (json.RawMessage, error) {
	result, err := p.catalog.Limited(ctx, call, func(ctx context.Context, call tool.Call) (tool.Result, error) {
		raw, err := p.Peer.Call(ctx, call, params)
		return tool.Result{Raw: raw}, err
	})
	return result.Raw, err
}
