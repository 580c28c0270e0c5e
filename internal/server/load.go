package server

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// load is how much a node has to do, for those who look on.
type load struct {
	CallsPerMinute uint64 `json:"calls_per_minute"` // of tools, whoever made them
	InFlight       int    `json:"in_flight"`
	Jobs           int    `json:"jobs"` // under way here
	Sessions       int    `json:"sessions"`
	Streams        int64  `json:"streams"` // who looks on
	Goroutines     int    `json:"goroutines"`
	MemoryMB       uint64 `json:"memory_mb"`
}

// rateMeter tells how many of something there were in the last minute.
type rateMeter struct {
	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at    time.Time
	total uint64
}

// lastMinute notes a total, and tells how much it grew within a minute.
func (t *rateMeter) lastMinute(now time.Time, total uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.samples) > 1 && now.Sub(t.samples[1].at) >= time.Minute {
		t.samples = t.samples[1:]
	}
	if len(t.samples) == 0 || now.Sub(t.samples[len(t.samples)-1].at) >= time.Second/2 {
		t.samples = append(t.samples, sample{now, total})
	}
	return total - min(total, t.samples[0].total)
}

// load tells how much there is to do here. Before the doors hang there is nothing.
func (srv *Server) load() json.RawMessage {
	if srv.hub == nil {
		return nil
	}
	now := load{Sessions: srv.hub.Sessions(), Streams: srv.dashboard.Readers(), Goroutines: runtime.NumGoroutine(), MemoryMB: memoryMB()}
	var calls uint64
	for _, namespace := range append(srv.upstreams.Manager.Namespaces(), "") {
		if stats, ok := srv.catalog.Stats(context.Background(), namespace); ok { // from memory
			calls += stats.Calls
			now.InFlight += stats.InFlight
		}
	}
	now.CallsPerMinute = srv.callRate.lastMinute(time.Now(), calls)
	if srv.jobs != nil {
		now.Jobs = srv.jobs.Running()
	}
	raw, _ := json.Marshal(now) // it always encodes
	return raw
}

// memoryMB is what the process holds of memory, by Go's own account.
func memoryMB() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return (samples[0].Value.Uint64() - samples[1].Value.Uint64()) >> 20
}

// nodes are those that share the database with us.
func (srv *Server) nodes(ctx context.Context) (adminapi.Nodes, error) {
	list, err := node.List(ctx, srv.store)
	for i := range list {
		if list[i].ID == srv.nodeID() {
			list[i].Load = srv.load() //nolint:contextcheck // it only looks at memory
		}
	}
	return adminapi.Nodes{Node: srv.nodeID(), Nodes: list}, err
}
