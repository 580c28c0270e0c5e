package server

import (
	"context"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/govern/peerview"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
	"github.com/luanette/luanette/internal/tools/search"
)

// openUpstreams opens the set of upstreams over the connection manager.
func (srv *Server) openUpstreams(ctx context.Context, manager *upstream.Manager, tools *overlay.Source) error {
	store, err := upstreamstore.Open(ctx, srv.store, secret.Box{
		Key:          srv.storedKey(),
		RecoveryHint: "add the upstream again with `luanette upstream add`",
	})
	if err != nil {
		return err
	}
	srv.upstreams, err = upstreamset.New(ctx, upstreamset.Options{
		Manager: manager, Overlay: tools, Catalog: srv.catalog, Store: store, Persistent: srv.options.Jobs,
		Audit: srv.audit.RecordAction, Address: srv.address, Warnings: srv.pins.Warnings, Pins: srv.pins, Events: srv.bus, Log: srv.log,
	})
	return err
}

// watchUpstreams applies upstreams that users add or remove on other nodes, and in other
// processes that use the same file, until ctx ends.
func (srv *Server) watchUpstreams(ctx context.Context) {
	if srv.upstreams.Persistent {
		srv.poll(ctx, upstreamstore.Topic, srv.upstreams.Poll)
	}
}

// peers shows single upstreams to the hub, for /mcp/NAME.
type peers struct {
	*upstreamset.Set
	srv *Server
}

// Peer returns the view of one upstream.
func (p peers) Peer(ctx context.Context, name string) (hub.Peer, bool) {
	relayed, ok := p.Relayed(ctx, name)
	if !ok {
		return nil, false
	}
	return peerview.New(relayed, name, peerview.Options{
		Catalog: p.Catalog, Overlay: p.Overlay, Pins: p.srv.pins,
		Transformed: func() bool {
			hooks := p.srv.hooks.Load()
			return hooks != nil && hooks.SeesTools()
		},
	}), true
}

// followPeople ends connections of people who were blocked, or whose values changed.
func (srv *Server) followPeople(manager *upstream.Manager) {
	watch := []func(func()) (stop func()){srv.keys.Watch}
	if srv.people != nil {
		watch = append(watch, srv.people.Store.Watch)
	}
	srv.runBackground(func(ctx context.Context) { srv.personal.Follow(ctx, manager, watch...) })
}

// known returns what the search knows of a namespace: what its server says about itself,
// and the results of its tools so far.
func (srv *Server) known(manager *upstream.Manager) func(namespace string) catalog.Known {
	return func(namespace string) catalog.Known {
		return catalog.Known{
			Context: search.Context{Server: manager.Instructions(namespace), Fields: srv.results.Fields},
			Learned: srv.results.Changes(namespace),
		}
	}
}
