package script

import (
	"context"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/events"
	"github.com/luanette/luanette/lua"
)

// deliverName is where the prelude of events leaves the function that hands an
// event to the handlers of on(type, fn).
const deliverName = "luanette.deliver"

// keepDeliver(fn) leaves that function there.
func keepDeliver(c *lua.Call) error {
	fn, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	c.State().Registry().SetString(deliverName, fn.Value())
	return nil
}

// Listens tells whether the script left handlers of events behind.
func (r *Resident) Listens() bool { return r != nil && r.listener.Subscribed() && r.has(deliverName) }

// Listen hands events to the handlers that the script left behind, one after the
// other, until ctx ends. They run in a copy of the script's world, so that one
// that takes long does not hold up hooks.
func (r *Resident) Listen(ctx context.Context) {
	log := r.runner.options.Log
	defer r.listener.Close()
	ears, err := r.apart()
	if err != nil {
		log.WarnContext(ctx, "handlers of events in the startup script", "error", err)
		return
	}
	clock := host.NewClock(r.runner.options.Clock)
	for {
		e, ok, err := r.listener.Next(ctx, clock, -1)
		if err != nil || !ok {
			return
		}
		table, err := events.Table(e)
		if err != nil {
			continue // what cannot be told is not for scripts
		}
		err = ears.handle(ctx, table)
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "handler of an event in the startup script", "event", e.Type, "error", err)
		}
	}
}

// handle gives an event to the handlers, in the budget of an ordinary run.
func (r *Resident) handle(ctx context.Context, table host.Value) error {
	return r.use(ctx, r.runner.options.Limits, nil, deliverName,
		func(s *lua.State) ([]lua.Value, error) {
			value, err := toLua(s, table)
			return []lua.Value{value}, err
		},
		func([]lua.Value) error { return nil })
}
