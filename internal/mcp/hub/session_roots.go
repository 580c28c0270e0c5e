package hub

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

var _ tool.Client = (*session)(nil)

// Ended implements tool.Client.
func (s *session) Ended() <-chan struct{} { return s.ended }

// Connected implements tool.Client: the client reads a stream.
func (s *session) Connected() bool { return s.readers.Load() > 0 }

// Roots implements tool.Client: it asks the client on the stream for messages that belong
// to no request.
func (s *session) Roots(ctx context.Context) (json.RawMessage, error) {
	_, caps := s.negotiated()
	question := tool.Question{Method: wire.MethodRoots}
	if err := checkDeclared(caps, []tool.Question{question}); err != nil {
		return nil, err
	}
	if !s.Connected() {
		return nil, fault.New(fault.Unavailable, "ask the client: it reads no stream")
	}
	return s.ask(ctx, func(m wire.Message, _ bool) bool { s.main.send(m.Append(nil)); return true }, question)
}

// rootsChanged passes the client's notification to the upstreams that it uses.
func (s *session) rootsChanged() {
	if u := s.ep.hub.opts.Upstreams; u != nil {
		u.RootsChanged(s)
	}
}
