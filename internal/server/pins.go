package server

import (
	"context"

	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
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
		Events: srv.bus, Log: srv.log,
	})
	return err
}

// ownNames are the names of our own tools.
func (srv *Server) ownNames() (names []string) {
	if srv.ownTools == nil { // no tool is offered yet
		return nil
	}
	for _, source := range []tool.Source{srv.ownTools, srv.scripts.published} {
		tools, _ := source.Tools(context.Background()) // from memory
		for i := range tools {
			names = append(names, tools[i].Name)
		}
	}
	return names
}

// admin makes the API for administrators.
func (srv *Server) admin() *adminapi.Server {
	return adminapi.New(adminapi.Options{
		Pins: pinAPI{srv}, Policy: srv.explainPolicy, Audit: srv.auditStore,
		Upstreams: adminapi.UpstreamSet{Set: srv.upstreams, Node: srv.nodeName(), Counts: srv.catalog, Policy: builtin.AllowHosts(srv.config.MCP.AllowedHosts)}, Nodes: srv.nodes, Learned: srv.usage,
		Browsers: srv.config.Browsers(),
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

// pinAPI is the pins for administrators: a decision takes effect and is recorded at
// once.
type pinAPI struct{ server *Server }

func (a pinAPI) List(upstream string, states ...pin.State) []*pin.Pin {
	return a.server.pins.List(upstream, states...)
}

func (a pinAPI) Get(id string) (*pin.Pin, error) { return a.server.pins.Get(id) }

func (a pinAPI) Decide(ctx context.Context, id string, d pin.Decision) (*pin.Pin, error) {
	defer a.server.catalog.Refresh(ctx)
	p, err := a.server.pins.Decide(ctx, id, d)
	if err == nil {
		a.server.auditAdmin(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
	}
	return p, err
}

func (a pinAPI) ApproveAll(ctx context.Context, upstream, by string, withFlags bool) (approved, left []*pin.Pin, err error) {
	defer a.server.catalog.Refresh(ctx)
	approved, left, err = a.server.pins.ApproveAll(ctx, upstream, by, withFlags)
	for _, p := range approved {
		a.server.auditAdmin(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
	}
	return approved, left, err
}
