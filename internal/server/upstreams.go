package server

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/access/peerview"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// openUpstreams opens the set of upstreams over the connection manager.
func (srv *Server) openUpstreams(ctx context.Context, manager *upstream.Manager, tools *overlay.Source) error {
	store, err := upstreamstore.Open(ctx, srv.store, secret.Box{
		Key:          sync.OnceValues(func() (secret.Text, error) { return srv.config.OAuthKey(srv.secrets) }),
		RecoveryHint: "add the upstream again with `luanette upstream add`",
	})
	if err != nil {
		return err
	}
	srv.upstreams, err = upstreamset.New(ctx, upstreamset.Options{
		Manager: manager, Overlay: tools, Catalog: srv.catalog, Store: store, Persistent: srv.options.Jobs,
		Audit: srv.auditAdmin, Address: srv.address, Warnings: srv.pins.Warnings, Events: srv.bus, Log: srv.log,
	})
	return err
}

// watchUpstreams applies upstreams that users add or remove on other nodes, and in other
// processes that use the same file, until ctx ends.
func (srv *Server) watchUpstreams(ctx context.Context) {
	last := [2]int64{-1} // the entries may have changed since they were read at the start
	srv.poll(ctx, upstreamstore.Topic, func(ctx context.Context) error {
		stamp, err := srv.upstreams.Store.Fingerprint(ctx)
		if err != nil || stamp == last {
			return err
		}
		if err = srv.upstreams.Reload(ctx); err == nil {
			last = stamp
		}
		return err
	})
}

// peers shows single upstreams to the hub, for /mcp/NAME.
type peers struct {
	*upstreamset.Set
	srv *Server
}

// Peer returns the view of one upstream.
func (p peers) Peer(name string) (hub.Peer, bool) {
	relayed, ok := p.Manager.Peer(name)
	if !ok || upstreamset.IsPrivate(name) {
		return nil, false // not a typed nil
	}
	return peerview.New(relayed, name, peerview.Options{
		Find: p.Manager.Find, Catalog: p.Catalog, Overlay: p.Overlay, Pins: p.srv.pins,
		Transformed: func() bool {
			hooks := p.srv.hooks.Load()
			return hooks != nil && hooks.SeesTools()
		},
	}), true
}
