package script

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/events"
	"github.com/luanette/luanette/lua"
)

// Startup runs the startup script, and then its startup() if it has one. It is an
// ordinary run, except that upstreams may accept commands and that the script stays
// loaded: the hooks and handlers it defined remain. An error is logged as a warning with
// the traceback; what the script defined before the error remains as well. Without a
// file it returns nil.
func (r *Runner) Startup(ctx context.Context, path string, upstreams host.Upstreams) *Resident {
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	q := Request{
		Source: string(source), Name: filepath.Base(path), Creator: "startup",
		Upstreams: upstreams, entry: &entry{name: "startup", optional: true},
		Watch: r.logPrinted(ctx), residentState: &residentState{},
		Handler: host.Live(), // the owner of the server approved it by installing it
	}
	if err == nil {
		_, err = r.Run(context.WithValue(ctx, hookKey{}, true), q)
	}
	if err != nil {
		r.options.Log.WarnContext(ctx, "startup script", "file", path, "error", err)
	}
	return r.resident(q)
}

// logPrinted writes what a script prints to the log, because no caller waits for it. Log
// lines are there already.
func (r *Runner) logPrinted(ctx context.Context) func(host.OutputLine) {
	return func(line host.OutputLine) {
		if line.Stream != "log" {
			r.options.Log.InfoContext(ctx, line.Text, "from", "startup script") //nolint:sloglint // the words are the script's
		}
	}
}

// Resident is a script that stays loaded after it ran: its functions can be called until
// the server stops, one at a time, each within limits of its own. They share their
// globals.
type Resident struct {
	runner    *Runner
	upstreams host.Upstreams
	name      string

	turn     chan struct{} // holds a token while the state is in use
	state    *lua.State
	listener *host.Listener // of on(type, fn); nil without handlers
}

// maxTurnWait is how long a call waits for earlier ones. Tests wait longer.
var maxTurnWait = time.Second

// has reports whether the script defines a function of that name.
func (r *Resident) has(name string) bool {
	_, ok := r.function(name).AsFunction()
	return ok
}

// function returns a global of the script, or a function that its preludes stored in the
// registry.
func (r *Resident) function(name string) lua.Value {
	if name == deliverName {
		return r.state.Registry().GetString(name)
	}
	return r.state.Globals().GetString(name)
}

// hookKey marks the context of effects of a resident's functions, so that they do not
// call its hooks again.
type hookKey struct{}

// InHook reports whether ctx belongs to an effect of a hook.
func InHook(ctx context.Context) bool { return ctx.Value(hookKey{}) != nil }

// resident makes a Resident of the state a run left; nil if it left none.
func (r *Runner) resident(q Request) *Resident {
	if q.residentState.state == nil {
		return nil
	}
	return &Resident{
		runner: r, upstreams: q.Upstreams, name: q.name(),
		turn: make(chan struct{}, 1), state: q.residentState.state, listener: q.residentState.listener,
	}
}

// residentState receives the state of a run that a Resident is made of.
type residentState struct {
	state    *lua.State
	listener *host.Listener
}

// call calls a function of the script. args makes its arguments and read reads its
// results, both while no other call uses the state.
func (r *Resident) call(ctx context.Context, limits Limits, handler host.Handler, function string, args func(*lua.State) ([]lua.Value, error), read func([]lua.Value) error) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer func() { <-r.turn }()
	ctx, cancel := context.WithTimeoutCause(context.WithValue(ctx, hookKey{}, true), limits.Time, &timeoutError{limits.Time})
	defer cancel()
	if handler == nil {
		handler = host.Live() // not the Handler of the calling run, whose journal does not cover hooks
	}
	q := Request{Name: r.name, Upstreams: r.upstreams, Handler: handler, Watch: r.runner.logPrinted(ctx)}
	temp := host.NewTemp(r.runner.options.TempDir, limits.Temp)
	defer func() { _ = temp.Close() }() // files of a hook are discarded
	output := host.NewOutput(r.runner.options.Log, limits.Output, q.Watch)
	r.state.Store(envKey{}, r.runner.environment(ctx, q, limits, ownServices{&host.ToolCounter{}, temp, output, r.listener}))
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
	late := time.NewTimer(maxTurnWait)
	defer late.Stop()
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-late.C:
		return fault.New(fault.Timeout, "%s is busy with other calls", r.name)
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
