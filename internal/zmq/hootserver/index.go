package hootserver

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// index maps the names of tools on the wire to tools of the source. The name is
// the tool's own unless two namespaces have the same one.
type index struct {
	mu   sync.Mutex
	of   []tool.Info
	refs map[string]tool.Ref
	list []hootproto.Tool
}

// find returns the tool with that name. It lists the source's tools only if the
// name is unknown; for a removed tool the source returns an error itself.
func (x *index) find(ctx context.Context, source tool.Source, name string) (tool.Ref, error) {
	if ref, ok := x.known(name); ok {
		return ref, nil
	}
	if err := x.refresh(ctx, source); err != nil {
		return tool.Ref{}, err
	}
	if ref, ok := x.known(name); ok {
		return ref, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	unknown := fault.New(fault.ToolNotFound, "no tool %q", name)
	if close := suggest.Names(name, slices.Sorted(maps.Keys(x.refs)), 3); len(close) > 0 {
		return tool.Ref{}, unknown.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return tool.Ref{}, unknown.WithHint("Ready returns the list of tools")
}

func (x *index) known(name string) (tool.Ref, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ref, ok := x.refs[name]
	return ref, ok
}

// tools returns the entries of the catalog.
func (x *index) tools(ctx context.Context, source tool.Source) ([]hootproto.Tool, error) {
	err := x.refresh(ctx, source)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list, err
}

// refresh updates the index if the source's list has changed.
func (x *index) refresh(ctx context.Context, source tool.Source) error {
	infos, err := source.Tools(ctx)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refs != nil && len(infos) == len(x.of) && (len(infos) == 0 || &infos[0] == &x.of[0]) {
		return nil
	}
	x.of, x.refs, x.list = infos, make(map[string]tool.Ref, len(infos)), make([]hootproto.Tool, 0, len(infos))
	for _, info := range infos {
		name := wireName(info.Name)
		if _, taken := x.refs[name]; taken {
			name = wireName(info.Space + "__" + info.Name)
		}
		if _, taken := x.refs[name]; taken {
			continue
		}
		x.refs[name] = info.Ref
		x.list = append(x.list, entry(name, info))
	}
	return nil
}

// entry is a tool in the format of the protocol.
func entry(name string, info tool.Info) hootproto.Tool {
	return hootproto.Tool{
		Name: name, Title: info.Title, Description: info.Description,
		InputSchema: info.Input, OutputSchema: info.Output,
		ReadOnly: info.Hints.ReadOnly, Idempotent: info.Hints.Idempotent,
		Destructive: !info.Hints.ReadOnly && !info.Hints.NonDestructive,
		ClosedWorld: info.Hints.ClosedWorld,
	}
}

// ready is the answer to Ready: the catalog.
func (s *Server) ready(ctx context.Context, f hootproto.Message) (hootproto.Message, error) {
	tools, err := s.index.tools(ctx, s.opts.Source)
	if err != nil {
		return f, err
	}
	content := f.Content
	if content != hootproto.MsgPack { // a message without a body has no content type
		content = hootproto.JSON
	}
	answer := f.Answer(hootproto.Ready)
	answer.Service = s.opts.Name
	return answer.With(content, hootproto.Catalog{
		Protocol: hootproto.Hoot01, Protocols: hootproto.Protocols(), Tools: tools, Broadcasts: s.Broadcasts(), AcceptsCancel: true,
		AcceptsMsgPack: s.opts.OfferMsgPack,
	})
}

// announceChanges sends the new catalog to every client that has asked for one
// whenever the tools change.
func (s *Server) announceChanges(ctx context.Context) {
	for {
		select {
		case <-s.opts.ToolsChanged: // never, when it is nil
		case <-ctx.Done():
			return
		}
		for _, address := range s.peers.addresses() {
			message := hootproto.New(hootproto.Ready, s.opts.Name)
			message.Identity, message.Protocol = address.identity, address.protocol
			s.answer(ctx, func() (hootproto.Message, error) { return s.ready(ctx, message) })
		}
	}
}
