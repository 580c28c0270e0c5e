package upstreamset

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// inProcess is a namespace of tools in this process. It is listed and served like an
// upstream, unless an upstream has its name.
type inProcess struct {
	name   string
	source tool.Source
}

// TransportInProcess is the transport of namespaces in this process.
const TransportInProcess = "in process"

// AddInProcess lists the tools of a source in this process as an upstream of that name.
// It is called before the set is used.
func (u *Set) AddInProcess(name string, source tool.Source) {
	u.inProcess = append(u.inProcess, &inProcess{name, source})
}

// local finds a namespace of this process that no upstream replaces.
func (u *Set) local(name string) *inProcess {
	i := slices.IndexFunc(u.inProcess, func(p *inProcess) bool { return p.name == name })
	if i < 0 || u.Manager.Has(name) {
		return nil
	}
	return u.inProcess[i]
}

// localStatuses are the states of the namespaces of this process.
func (u *Set) localStatuses() (list []Status) {
	for _, p := range u.inProcess {
		if u.local(p.name) != nil {
			list = append(list, p.status())
		}
	}
	return list
}

func (p *inProcess) status() Status {
	tools, _ := p.source.Tools(context.Background()) // from memory
	return Status{
		Namespace: p.name, Endpoint: "in this process", Transport: TransportInProcess,
		State: "connected", Tools: len(tools),
	}
}

// Owner is whose connection to an upstream the requests of ctx use; empty if all share one.
func (u *Set) Owner(ctx context.Context, name string) string {
	if !u.Manager.Personal(name) {
		return ""
	}
	return principal.Of(ctx).LoginOwner()
}

// Relayed returns an upstream, or a namespace of this process, for /mcp/NAME. If each
// principal has a connection of its own, it is that of the principal of ctx.
func (u *Set) Relayed(ctx context.Context, name string) (hub.Peer, bool) {
	if p := u.local(name); p != nil {
		return p, true
	}
	relayed, ok := u.Manager.Peer(name)
	if !ok || IsPrivate(name) {
		return nil, false // not a typed nil
	}
	if u.Manager.Personal(name) {
		relayed = relayed.For(principal.Of(ctx))
	}
	return relayed, true
}

// Find implements hub.Peer.
func (p *inProcess) Find(ctx context.Context, name string) (tool.Info, bool) {
	tools, _ := p.source.Tools(ctx) // from memory
	i := slices.IndexFunc(tools, func(info tool.Info) bool { return info.Name == name })
	if i < 0 {
		return tool.Info{}, false
	}
	return tools[i], true
}

// Call implements hub.Peer.
func (p *inProcess) Call(ctx context.Context, call tool.Call, _ json.RawMessage) (tool.Result, error) {
	call.Ref.Space = p.name
	return p.source.Call(ctx, call)
}

// Request implements hub.Peer. There are only tools.
func (p *inProcess) Request(ctx context.Context, method string, _ json.RawMessage, _ *tool.Caller) (json.RawMessage, error) {
	switch method {
	case wire.MethodPing:
		return json.RawMessage(`{}`), nil
	case wire.MethodToolsList:
		return p.list(ctx)
	}
	return nil, fault.Wrap(fault.NotFound, wire.Errorf(wire.CodeMethodNotFound, "%s has no %s", p.name, method), "%s", p.name)
}

func (p *inProcess) list(ctx context.Context) (json.RawMessage, error) {
	tools, err := p.source.Tools(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, len(tools))
	for i := range tools {
		list[i] = tools[i].Raw
	}
	return rawjson.Set(nil, "tools", rawjson.List(list)), nil
}

// Listed implements hub.Peer.
func (p *inProcess) Listed(context.Context, string) []json.RawMessage { return nil }

// Describe implements hub.Peer.
func (p *inProcess) Describe(context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error) {
	return json.RawMessage(`{"tools":{}}`), rawjson.SetText(rawjson.SetText(nil, "name", p.name), "version", TransportInProcess), nil, nil
}

// Watch implements hub.Peer. The tools never change.
func (p *inProcess) Watch(func(string, json.RawMessage)) (stop func()) { return func() {} }

var _ hub.Peer = (*inProcess)(nil)
