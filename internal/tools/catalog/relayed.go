package catalog

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Relayed is a call that takes another way to its tool, as seen by counters and
// bus. It costs next to nothing while nobody listens. The zero one is of nobody.
type Relayed struct {
	observation
	told bool // somebody listened when it began
}

// Relay takes note of a call that takes another way to its tool; End must follow.
func (c *Catalog) Relay(ctx context.Context, call tool.Call) (r Relayed) {
	s := c.shelf(ctx, call.Ref.Space)
	if s == nil {
		return r // it is going
	}
	r.observation = c.begin(s.state, call)
	if r.told = c.bus.HasSubscriber(CallStarted{}.EventType()); r.told {
		r.facts.Depth = Depth(ctx) + 1
		r.start()
	}
	return r
}

// EndSession takes note of how it went.
func (r *Relayed) End(ctx context.Context, result tool.Result, err error) {
	if r.catalog == nil {
		return
	}
	kind, text := outcome(result, err)
	if r.told || r.catalog.bus.HasSubscriber(CallEnded{}.EventType()) {
		r.facts.Depth = Depth(ctx) + 1
		r.end(ctx, kind, text)
		return
	}
	r.count(ctx, kind)
}

// Broken ends one that left by a panic, so that it is not counted for ever. After
// EndSession it does nothing.
func (r *Relayed) Broken() {
	if r.catalog != nil && !r.ended {
		r.count(context.Background(), string(fault.Internal))
	}
}
