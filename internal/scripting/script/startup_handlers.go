package script

import (
	"context"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/events"
	"github.com/luanette/luanette/lua"
)

// deliverName is the registry key under which the events prelude stores the function
// that passes an event to the handlers of on(type, fn).
const deliverName = "luanette.deliver"

// storeDeliver(fn) stores that function.
func storeDeliver(c *lua.Call) error {
	fn, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	c.State().Registry().SetString(deliverName, fn.Value())
	return nil
}

// Listens reports whether the script has event handlers.
func (r *Resident) Listens() bool { return r != nil && r.listener.Subscribed() && r.has(deliverName) }

// Listen passes events to the handlers of the script, one after the other, until ctx
// ends. They run in a copy of the script's state, so that a slow handler does not delay
// hooks.
func (r *Resident) Listen(ctx context.Context) {
	log := r.runner.options.Log
	defer r.listener.Close()
	ears, err := r.fork()
	if err != nil {
		log.WarnContext(ctx, "event handlers of the startup script", "error", err)
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
			continue // an event that cannot be encoded is skipped
		}
		err = ears.handle(ctx, table)
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "event handler of the startup script", "event", e.Type, "error", err)
		}
	}
}

// handle passes an event to the handlers, within the limits of an ordinary run.
func (r *Resident) handle(ctx context.Context, table host.Value) error {
	return r.call(ctx, r.runner.options.Limits, nil, deliverName,
		func(s *lua.State) ([]lua.Value, error) {
			value, err := toLua(s, table)
			return []lua.Value{value}, err
		},
		func([]lua.Value) error { return nil })
}
