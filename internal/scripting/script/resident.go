package script

import (
	"context"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/events"
	"github.com/luanette/luanette/lua"
)

// Resident is a script in Lua that stays loaded after it ran: its functions can be called
// until the server stops, one at a time, each within limits of its own. They share their
// globals.
type Resident struct {
	runner  *Runner
	request Request // what its calls have in common
	options ResidentOptions

	turn  chan struct{} // holds a token while the state is in use
	state *lua.State
}

// ResidentOptions are the options of a script that stays loaded.
type ResidentOptions struct {
	Function string                                 // called after the script itself, if it defines it
	Wait     time.Duration                          // how long a call waits for earlier ones
	Print    func(context.Context, host.OutputLine) // receives what the script prints; must not block
}

// Load runs a script that stays loaded. What it defined before an error stays; the Resident
// is nil if nothing did.
func (r *Runner) Load(ctx context.Context, q Request, o ResidentOptions) (*Resident, error) {
	q.entry, q.listener = entry{name: o.Function, optional: true}, host.NewListener(r.options.Events)
	q.Watch = func(line host.OutputLine) { o.Print(ctx, line) }
	outcome, err := r.Run(context.WithValue(ctx, residentKey{}, true), q)
	left, ok := outcome.State.(*luaState)
	if !ok {
		q.listener.Close()
		return nil, err
	}
	return &Resident{
		runner: r, options: o, turn: make(chan struct{}, 1), state: left.state,
		request: Request{Name: q.name(), Upstreams: q.Upstreams, listener: q.listener},
	}, err
}

// residentKey marks the context of effects of a resident's functions.
type residentKey struct{}

// InResident reports whether ctx belongs to an effect of a resident script.
func InResident(ctx context.Context) bool { return ctx.Value(residentKey{}) != nil }

// Has reports whether the script defines a function of that name.
func (r *Resident) Has(name string) bool {
	_, ok := r.function(name).AsFunction()
	return ok
}

// Limits returns the limits of its runner.
func (r *Resident) Limits() Limits { return r.runner.options.Limits }

// function returns a global of the script, or a function that its preludes stored in the
// registry.
func (r *Resident) function(name string) lua.Value {
	if name == deliverName {
		return r.state.Registry().GetString(name)
	}
	return r.state.Globals().GetString(name)
}

// Call calls a function of the script. args makes its arguments and read reads its
// results, both while no other call uses the state. Without a Handler effects are live.
func (r *Resident) Call(
	ctx context.Context, limits Limits, handler host.Handler, function string,
	args func(*lua.State) ([]lua.Value, error), read func([]lua.Value) error,
) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer func() { <-r.turn }()
	ctx, cancel := context.WithTimeoutCause(context.WithValue(ctx, residentKey{}, true), limits.Time, &timeoutError{limits.Time})
	defer cancel()
	q := r.request
	q.Watch = func(line host.OutputLine) { r.options.Print(ctx, line) }
	if q.Handler = handler; handler == nil {
		q.Handler = host.Live() // not the Handler of the calling run, whose journal does not cover its calls of residents
	}
	temp := host.NewTemp(r.runner.options.TempDir, limits.Temp)
	defer func() { _ = temp.Close() }() // its files are discarded
	output := host.NewOutput(r.runner.options.Log, limits.Output, q.Watch)
	r.state.Store(envKey{}, r.runner.environment(ctx, q, runLimits{Limits: limits}, ownServices{&host.ToolCounter{}, temp, output, q.listener}))
	flights := newFlights()
	r.state.Store(flightsKey{}, flights)
	defer flights.close()
	values, err := args(r.state)
	if err != nil {
		return err
	}
	results, err := r.state.Call(ctx, r.function(function), values...)
	if err = errors.Join(err, finish(ctx, r.state)); err != nil {
		return r.runner.explain(ctx, q, err)
	}
	return read(results)
}

// enter waits for its turn.
func (r *Resident) enter(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(r.options.Wait)
	defer late.Stop()
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-late.C:
		return fault.New(fault.Timeout, "%s is busy with other calls", r.request.Name)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fork returns a copy of the resident with its own globals, so that calls of one do not
// wait for calls of the other.
func (r *Resident) fork() (*Resident, error) {
	state, err := r.state.Fork()
	if err != nil {
		return nil, err
	}
	copied := *r
	copied.turn, copied.state = make(chan struct{}, 1), state
	return &copied, nil
}

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
func (r *Resident) Listens() bool { return r.request.listener.Subscribed() && r.Has(deliverName) }

// Listen passes events to the handlers of the script, one after the other, until ctx
// ends. They run in a copy of the script's state, so that a slow handler does not delay
// hooks.
func (r *Resident) Listen(ctx context.Context) {
	log := r.runner.options.Log
	defer r.request.listener.Close()
	ears, err := r.fork()
	if err != nil {
		log.WarnContext(ctx, "script with event handlers cannot be copied", "script", r.request.Name, "error", err)
		return
	}
	clock := host.NewClock(r.runner.options.Clock)
	for {
		e, ok, err := r.request.listener.Next(ctx, clock, -1)
		if err != nil || !ok {
			return
		}
		table, err := events.Table(e)
		if err != nil {
			continue // an event that cannot be encoded is skipped
		}
		err = ears.handle(ctx, table)
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "event handler of a script", "script", r.request.Name, "event", e.Type, "error", err)
		}
	}
}

// handle passes an event to the handlers, within the limits of an ordinary run.
func (r *Resident) handle(ctx context.Context, table host.Value) error {
	return r.Call(ctx, r.runner.options.Limits, nil, deliverName,
		func(s *lua.State) ([]lua.Value, error) {
			value, err := toLua(s, table)
			return []lua.Value{value}, err
		},
		func([]lua.Value) error { return nil })
}
