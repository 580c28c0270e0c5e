package server

import (
	"context"

	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// openPins opens the pins and the guard that checks the tools of the upstreams.
func (srv *Server) openPins(ctx context.Context, manager *upstream.Manager) (err error) {
	srv.pins, err = pin.New(ctx, srv.store, manager, pin.Options{
		Settings: srv.config.PinSettings(), Own: srv.ownNames,
		Target: func(namespace string) string {
			status, _ := manager.Status(namespace)
			return status.Target
		},
		Personal: manager.Personal, Decided: srv.pinsDecided, Events: srv.bus, Log: srv.log,
	})
	return err
}

// ownNames are the names of our own tools.
func (srv *Server) ownNames() (names []string) {
	own := srv.ownTools.Load()
	if own == nil { // no tool is offered yet
		return nil
	}
	for _, source := range []tool.Source{own, srv.scripts.published} {
		tools, _ := source.Tools(context.Background()) // from memory
		for i := range tools {
			names = append(names, tools[i].Name)
		}
	}
	return names
}

// orgUpstreams are the upstreams that organisations add for themselves.
func (srv *Server) orgUpstreams() *upstreamset.Orgs {
	return &upstreamset.Orgs{
		Set: srv.upstreams, CheckURL: servertools.AllowOrgHosts(srv.config.MCP.AllowedHosts),
		Most: func(org string) int { return srv.current().MaxUpstreams(org) },
	}
}

// admin makes the API for administrators.
func (srv *Server) admin() *adminapi.Server {
	return adminapi.New(adminapi.Options{
		Pins: srv.pins, Policy: adminapi.CatalogPolicy{Policy: srv.policy, Catalog: srv.catalog}, Audit: srv.auditStore,
		Tools:     adminapi.Tools{Catalog: srv.catalog, Set: srv.upstreams, Configure: srv.setup.SetTools},
		Upstreams: adminapi.UpstreamSet{Set: srv.upstreams, Node: srv.node.Name(), Counts: srv.catalog, Policy: servertools.AllowHosts(srv.config.MCP.AllowedHosts)}, Nodes: srv.nodes, Learned: srv.usage, Egress: srv.egress, Sandbox: srv.sandbox,
		OrgUpstreams: adminapi.NewOrgUpstreams(adminapi.UpstreamSet{Node: srv.node.Name(), Counts: srv.catalog}, srv.orgUpstreams()),
	})
}

// watchPins follows the decisions of other processes.
func (srv *Server) watchPins(ctx context.Context) {
	srv.poll(ctx, pin.Topic, func(ctx context.Context) error {
		changed, err := srv.pins.Poll(ctx)
		if changed {
			srv.catalog.Refresh(ctx)
		}
		return err
	})
}

// pinsDecided makes decisions take effect and records them at once.
func (srv *Server) pinsDecided(ctx context.Context, pins ...*pin.Pin) {
	srv.catalog.Refresh(ctx)
	for _, p := range pins {
		srv.audit.RecordAction(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
	}
}
