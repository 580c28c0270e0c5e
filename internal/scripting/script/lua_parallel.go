package script

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// flights are the effects that a state runs in parallel. A task of the parallel module
// that calls a function that waits starts a flight and is suspended; the scheduler,
// which is the module's prelude, resumes it when the flight has finished.
type flights struct {
	tasks   map[*lua.Thread]bool  // coroutines whose effects may run in parallel; used by the script's goroutine only
	waiting map[*lua.Thread]int64 // the flight each started last

	pilots sync.WaitGroup
	mu     sync.Mutex
	last   int64
	open   map[int64]*flight // not yet claimed
	landed []int64           // finished but not reported yet, in order
	wake   chan struct{}     // holds a token when a flight has finished
}

// flight is one effect in progress. Its outcome is set when done is closed.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{}
	values []host.Value
	err    error
}

// newFlights makes no maps yet: most scripts run one effect at a time.
func newFlights() *flights { return &flights{wake: make(chan struct{}, 1)} }

// flightsKey is the key of a state's flights.
type flightsKey struct{}

func flightsOf(s *lua.State) *flights {
	f, _ := s.Stored(flightsKey{}).(*flights)
	return f
}

// close cancels the effects in progress and waits for them to end.
func (f *flights) close() {
	f.mu.Lock()
	for _, one := range f.open {
		one.cancel()
	}
	f.mu.Unlock()
	f.pilots.Wait()
}

// start begins a flight for the task that runs in thread.
func (f *flights) start(ctx context.Context, thread *lua.Thread, effect func(context.Context) ([]host.Value, error)) {
	ctx, cancel := context.WithCancel(ctx)
	one := &flight{cancel: cancel, done: make(chan struct{})}
	f.mu.Lock()
	f.last++
	number := f.last
	f.open[number] = one
	f.mu.Unlock()
	f.waiting[thread] = number
	f.pilots.Go(func() {
		defer cancel()
		one.values, one.err = effect(ctx)
		close(one.done)
		f.mu.Lock()
		f.landed = append(f.landed, number)
		f.mu.Unlock()
		select {
		case f.wake <- struct{}{}:
		default:
		}
	})
}

// next waits for the flight that finishes first; 0 if none is in progress.
func (f *flights) next(ctx context.Context) (int64, error) {
	for {
		f.mu.Lock()
		for len(f.landed) > 0 {
			number := f.landed[0]
			f.landed = f.landed[1:]
			if f.open[number] != nil { // neither claimed nor aborted
				f.mu.Unlock()
				return number, nil
			}
		}
		none := len(f.open) == 0
		f.mu.Unlock()
		if none {
			return 0, nil
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// claim returns a flight after waiting for it to finish, as when a journal says which
// one finished first in the recorded run.
func (f *flights) claim(ctx context.Context, number int64) (*flight, error) {
	f.mu.Lock()
	one := f.open[number]
	delete(f.open, number)
	f.mu.Unlock()
	if one == nil {
		return nil, nil
	}
	select {
	case <-one.done:
		return one, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// parallelFuncs are the functions of this engine for the prelude of the parallel module.
func parallelFuncs() []lua.Reg {
	return []lua.Reg{
		{Name: "__adopt", Fn: setTask},
		{Name: "__flight", Fn: flightOf},
		{Name: "__land", Fn: nextFlight},
		{Name: "__abort", Fn: abortFlight},
		{Name: "__raise", Fn: raiseFrom},
	}
}

// setTask(thread, yes) marks a coroutine as a task, or removes the mark.
func setTask(c *lua.Call) error {
	f, thread := flightsOf(c.State()), threadAt(c)
	if f == nil || thread == nil {
		return nil
	}
	if !c.Arg(2).Truthy() {
		delete(f.tasks, thread)
		return nil
	}
	if f.tasks == nil {
		f.tasks, f.waiting, f.open = map[*lua.Thread]bool{}, map[*lua.Thread]int64{}, map[int64]*flight{}
	}
	f.tasks[thread] = true
	return nil
}

// flightOf(thread) returns the number of the flight that a task was suspended for, once.
func flightOf(c *lua.Call) error {
	f, thread := flightsOf(c.State()), threadAt(c)
	if f == nil {
		return nil
	}
	number, ok := f.waiting[thread]
	if !ok {
		return nil
	}
	delete(f.waiting, thread)
	return c.Return(lua.Int(number))
}

// nextFlight() waits for the next flight to finish and returns its number, or nil if
// none is in progress. The order depends on the outside, so it passes the Handler like
// the time does.
func nextFlight(c *lua.Call) error {
	f := flightsOf(c.State())
	env, _ := c.State().Stored(envKey{}).(*host.Env)
	if f == nil || env == nil {
		return nil
	}
	number, err := nextDone(c.Context(), env, f.next)
	if err != nil {
		return raise(c, err)
	}
	if number != 0 {
		return c.Return(lua.Int(number))
	}
	return nil
}

// nextDone returns which of several effects in progress has ended next, by the number
// the engine gave it.
func nextDone(ctx context.Context, env *host.Env, next func(context.Context) (int64, error)) (int64, error) {
	f := &host.Func{Name: "land", Kind: host.Nondeterministic, Inspectable: true, Waits: true, Effect: host.Bind(next)}
	values, err := env.Call(ctx, "parallel", f, nil)
	if err != nil || len(values) != 1 {
		return 0, err
	}
	number, _ := values[0].(int64)
	return number, nil
}

// abortFlight(number) cancels a flight whose outcome is not needed any more.
func abortFlight(c *lua.Call) error {
	f := flightsOf(c.State())
	number, _ := c.Arg(1).AsInt()
	if f == nil {
		return nil
	}
	f.mu.Lock()
	one := f.open[number]
	delete(f.open, number)
	f.mu.Unlock()
	if one != nil {
		one.cancel()
	}
	return nil
}

// raiseFrom(thread, value, which) raises a task's error where it is waited for: with its
// cause, the stack it happened on, and the number of the task.
func raiseFrom(c *lua.Call) error {
	e := &lua.Error{Value: c.Arg(2)}
	if thread := threadAt(c); thread != nil {
		if failure := thread.Failure(); failure != nil {
			e.Cause = failure.Cause
			e.Traceback = failure.Traceback + "\n" + c.State().Traceback(c.Thread(), "", 1)
		}
	}
	which, _ := c.Arg(3).AsString()
	if text, ok := e.Value.AsString(); ok {
		e.Value = lua.String(text + which)
	} else if raisedFault(e.Value) != nil {
		e.Value = extendError(e.Value, which)
	}
	return e
}

func threadAt(c *lua.Call) *lua.Thread {
	thread, _ := c.Arg(1).AsThread()
	return thread
}
