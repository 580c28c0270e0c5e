package server

import (
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// openPins puts the guard between the upstreams and whoever uses their tools.
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

// ownNames are the names nobody else's tool may have.
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

// awaitingReview tells how many tools of an upstream are hidden until a person has
// approved them.
func (u *upstreams) awaitingReview(namespace string) []string {
	if n := u.pins.CountHidden(namespace); n > 0 {
		return []string{fmt.Sprintf("%d of its tools await review: luanette pin list %s", n, namespace)}
	}
	return nil
}

// admin makes the door for those who run the house.
func (srv *Server) admin() *adminapi.Server {
	return adminapi.New(adminapi.Options{
		Pins: pinRoom{srv}, Policy: srv.explainPolicy, Audit: srv.auditStore,
		Upstreams: serverRoom{srv, builtin.AllowHosts(srv.config.MCP.AllowedHosts)}, Nodes: srv.nodes,
		Browsers: netguard.Browsers{Origins: srv.config.MCP.AllowedOrigins},
	})
}

// watchPins heeds what other processes decide.
func (srv *Server) watchPins(ctx context.Context) {
	srv.poll(ctx, pin.Topic, func(ctx context.Context) error {
		changed, err := srv.pins.Poll(ctx)
		if changed {
			srv.catalog.Refresh(ctx)
		}
		return err
	})
}

// pinRoom shows what a decision changes as soon as it is made.
type pinRoom struct{ house *Server }

func (r pinRoom) List(upstream string, states ...pin.State) []*pin.Pin {
	return r.house.pins.List(upstream, states...)
}

func (r pinRoom) Get(id string) (*pin.Pin, error) { return r.house.pins.Get(id) }

func (r pinRoom) Decide(ctx context.Context, id string, d pin.Decision) (*pin.Pin, error) {
	defer r.house.catalog.Refresh(ctx)
	p, err := r.house.pins.Decide(ctx, id, d)
	if err == nil {
		r.house.auditAdmin(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
	}
	return p, err
}

func (r pinRoom) ApproveAll(ctx context.Context, upstream, by string, withFlags bool) (approved, left []*pin.Pin, err error) {
	defer r.house.catalog.Refresh(ctx)
	approved, left, err = r.house.pins.ApproveAll(ctx, upstream, by, withFlags)
	for _, p := range approved {
		r.house.auditAdmin(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
	}
	return approved, left, err
}
