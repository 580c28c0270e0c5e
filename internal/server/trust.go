package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// openTrust puts the guard between the upstreams and whoever uses their tools.
func (srv *Server) openTrust(ctx context.Context, manager *upstream.Manager) (err error) {
	srv.trust, err = pin.New(ctx, srv.store, manager, pin.Options{
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
	if srv.own == nil { // no tool is offered yet
		return nil
	}
	for _, source := range []tool.Source{srv.own, srv.scripts.published} {
		tools, _ := source.Tools(context.Background()) // from memory
		for i := range tools {
			names = append(names, tools[i].Name)
		}
	}
	return names
}

// withheld tells of what an upstream offers and nobody sees.
func (u *upstreams) withheld(namespace string) []string {
	if n := u.guard.CountHidden(namespace); n > 0 {
		return []string{fmt.Sprintf("%d of its tools are held: luanette pin list %s", n, namespace)}
	}
	return nil
}

// trustedPeer is an upstream seen whole of which what is not approved is left out.
// Calls of tools are decided about before: see watchedPeer.
type trustedPeer struct {
	hub.Peer
	name  string
	guard *pin.Guard
}

// Request relays a request about what may be seen.
func (p trustedPeer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	switch method {
	case wire.MethodPromptsGet:
		name, _ := rawjson.GetText(params, "name")
		if err := p.admitPrompt(ctx, name); err != nil {
			return nil, err
		}
	case wire.MethodToolsList, wire.MethodPromptsList:
		page, err := p.Peer.Request(ctx, method, params, caller)
		if err != nil {
			return nil, err
		}
		return p.sift(ctx, method, page), nil
	}
	return p.Peer.Request(ctx, method, params, caller)
}

// sift takes out of a page what is held.
func (p trustedPeer) sift(ctx context.Context, method string, page json.RawMessage) json.RawMessage {
	list, kind := "tools", pin.Tool
	if method == wire.MethodPromptsList {
		list, kind = "prompts", pin.Prompt
	}
	raw, ok := rawjson.Get(page, list)
	items, isList := rawjson.Items(raw)
	if !ok || !isList {
		return page
	}
	kept, all := []byte{'['}, true
	for _, item := range items {
		name, _ := rawjson.GetText(item, "name")
		if p.guard.CheckDefinition(ctx, p.name, kind, item) != nil || kind == pin.Tool && p.guard.CheckCall(ctx, tool.Ref{Space: p.name, Name: name}) != nil {
			all = false
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, item...)
	}
	if all {
		return page
	}
	return rawjson.Set(page, list, append(kept, ']'))
}

// mostPages bounds how long an upstream can keep us reading.
const mostPages = 100

// admitPrompt says why a prompt may not be used. One that was never listed is
// looked for first.
func (p trustedPeer) admitPrompt(ctx context.Context, name string) error {
	seen, err := p.guard.CheckKnown(p.name, pin.Prompt, name)
	if seen {
		return err
	}
	params := json.RawMessage(`{}`)
	for range mostPages {
		page, err := p.Request(ctx, wire.MethodPromptsList, params, nil)
		if err != nil {
			return err
		}
		cursor, more := rawjson.Get(page, "nextCursor")
		if !more || rawjson.IsNull(cursor) {
			break
		}
		params = rawjson.Set(nil, "cursor", cursor)
	}
	if seen, err = p.guard.CheckKnown(p.name, pin.Prompt, name); seen {
		return err
	}
	return fault.New(fault.NotFound, "no prompt %q", name).
		WithHint("%s is pinned: only what it lists, and somebody approved, can be used", p.name)
}

// Describe leaves out instructions that nobody approved.
func (p trustedPeer) Describe(ctx context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error) {
	capabilities, serverInfo, instructions, err = p.Peer.Describe(ctx)
	if text, _ := rawjson.Text(instructions); err == nil && text != "" && p.guard.CheckDefinition(ctx, p.name, pin.Instructions, instructions) != nil {
		instructions = nil
	}
	return capabilities, serverInfo, instructions, err
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
	srv.heed(ctx, pin.Topic, func(ctx context.Context) error {
		changed, err := srv.trust.Poll(ctx)
		if changed {
			srv.catalog.Refresh(ctx)
		}
		return err
	})
}

// pinRoom shows what a decision changes as soon as it is made.
type pinRoom struct{ house *Server }

func (r pinRoom) List(upstream string, states ...pin.State) []*pin.Pin {
	return r.house.trust.List(upstream, states...)
}

func (r pinRoom) Get(id string) (*pin.Pin, error) { return r.house.trust.Get(id) }

func (r pinRoom) Decide(ctx context.Context, id string, d pin.Decision) (*pin.Pin, error) {
	defer r.house.catalog.Refresh(ctx)
	p, err := r.house.trust.Decide(ctx, id, d)
	if err == nil {
		r.house.did(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
	}
	return p, err
}

func (r pinRoom) ApproveAll(ctx context.Context, upstream, by string, withFlags bool) (approved, left []*pin.Pin, err error) {
	defer r.house.catalog.Refresh(ctx)
	approved, left, err = r.house.trust.ApproveAll(ctx, upstream, by, withFlags)
	for _, p := range approved {
		r.house.did(ctx, "pin."+string(p.State()), p.Upstream+"."+p.Name, []byte(p.Digest))
	}
	return approved, left, err
}
