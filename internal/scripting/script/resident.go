package script

import (
	"context"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// Resident is a script that stays after it ran: its functions can be called for
// as long as the house stands, one at a time, each in a budget of its own. What
// they leave in globals is there for the next.
type Resident struct {
	runner    *Runner
	upstreams host.Upstreams
	name      string

	turn     chan struct{} // holds a token while somebody uses state
	state    *lua.State
	listener *host.Listener // of on(type, fn); nil without handlers
}

// patience is how long a call waits for the others before it. Tests have more.
var patience = time.Second

// has tells whether the script has a function of that name.
func (r *Resident) has(name string) bool {
	_, ok := r.function(name).AsFunction()
	return ok
}

// function is a global of the script, or what its preludes left for the house.
func (r *Resident) function(name string) lua.Value {
	if name == deliverName {
		return r.state.Registry().GetString(name)
	}
	return r.state.Globals().GetString(name)
}

// insideKey marks the context of what a resident's functions do, so that it does
// not come back to them.
type insideKey struct{}

// InHook tells whether ctx belongs to something that a hook does.
func InHook(ctx context.Context) bool { return ctx.Value(insideKey{}) != nil }

// resident makes what a run left into a resident; nil when it left nothing.
func (r *Runner) resident(q Request) *Resident {
	if q.stay.state == nil {
		return nil
	}
	if end, ok := q.stay.state.Stored(endKey{}).(*lua.Function); ok {
		q.stay.state.Registry().SetString(atEndName, end.Value()) // copies find it there
	}
	return &Resident{
		runner: r, upstreams: q.Upstreams, name: q.name(),
		turn: make(chan struct{}, 1), state: q.stay.state, listener: q.stay.listener,
	}
}

// stay is where a run leaves what a resident is made of.
type stay struct {
	state    *lua.State
	listener *host.Listener
}

// use calls a function of the script: args makes its arguments and read reads its
// results, both while nobody else uses the state.
func (r *Resident) use(ctx context.Context, limits Limits, handler host.Handler, function string, args func(*lua.State) ([]lua.Value, error), read func([]lua.Value) error) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer func() { <-r.turn }()
	ctx, cancel := context.WithTimeoutCause(context.WithValue(ctx, insideKey{}, true), limits.Time, &timeoutError{limits.Time})
	defer cancel()
	if handler == nil {
		handler = host.Live() // not that of whoever led here: a journal of theirs knows nothing of us
	}
	q := Request{Name: r.name, Upstreams: r.upstreams, Handler: handler, Watch: r.runner.logPrinted(ctx)}
	temp := host.NewTemp(r.runner.options.TempDir, limits.Temp)
	defer func() { _ = temp.Close() }() // what a hook left there is nobody's
	output := host.NewOutput(r.runner.options.Log, limits.Output, q.Watch)
	r.state.Store(envKey{}, r.runner.environment(ctx, q, limits, belongings{&host.ToolCounter{}, temp, output, r.listener}))
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
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-late.C:
		return fault.New(fault.Timeout, "%s is busy with others", r.name)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// apart is a copy of the resident that others do not wait for. Globals are its own
// from here on.
func (r *Resident) apart() (*Resident, error) {
	state, err := r.state.Fork()
	if err != nil {
		return nil, err
	}
	copied := *r
	copied.turn, copied.state = make(chan struct{}, 1), state
	if end, ok := state.Registry().GetString(atEndName).AsFunction(); ok {
		state.Store(endKey{}, end)
	}
	return &copied, nil
}
