package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// load reports how much this node has to do. Before the endpoints are built it is empty.
func (srv *Server) load() json.RawMessage {
	if srv.hub == nil {
		return nil
	}
	now := node.Load{Sessions: srv.hub.Sessions(), Streams: srv.dashboard.Readers()}
	now.AddProcess()
	var calls uint64
	for _, namespace := range append(srv.upstreams.Manager.Namespaces(), "") {
		if stats, ok := srv.catalog.Stats(context.Background(), namespace); ok { // from memory
			calls += stats.Calls
			now.InFlight += stats.InFlight
		}
	}
	now.CallsPerMinute = srv.callRate.LastMinute(time.Now(), calls)
	if srv.jobs != nil {
		now.Jobs = srv.jobs.Running()
	}
	raw, _ := json.Marshal(now) // it always encodes
	return raw
}

// nodes lists the nodes that share the database.
func (srv *Server) nodes(ctx context.Context) (adminapi.Nodes, error) {
	list, err := node.List(ctx, srv.store)
	for i := range list {
		if list[i].ID == srv.nodeID() {
			list[i].Load = srv.load() //nolint:contextcheck // it only looks at memory
		}
	}
	return adminapi.Nodes{Node: srv.nodeID(), Nodes: list}, err
}
