package script

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// flights are the effects a state has under way at once. A task of the parallel
// module that calls something that waits starts a flight and is suspended; the
// scheduler, the module's prelude, resumes it when the flight has landed.
type flights struct {
	tasks   map[*lua.Thread]bool  // whose effects may fly; only the script's goroutine looks
	waiting map[*lua.Thread]int64 // the flight each started last

	pilots sync.WaitGroup
	mu     sync.Mutex
	last   int64
	open   map[int64]*flight // not yet claimed
	landed []int64           // not yet told, in order of landing
	wake   chan struct{}     // holds a token when something landed
}

// flight is one effect under way. Its outcome is there once done is closed.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{}
	values []host.Value
	err    error
}

// newFlights makes no maps yet: most scripts do one thing at a time.
func newFlights() *flights { return &flights{wake: make(chan struct{}, 1)} }

// flightsKey is where a state keeps its flights.
type flightsKey struct{}

func flightsOf(s *lua.State) *flights {
	f, _ := s.Stored(flightsKey{}).(*flights)
	return f
}

// close cancels what is under way and waits for it to end.
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

// next waits for the flight that lands first; 0 when none is under way.
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

// claim takes a flight's outcome, waiting for it if need be, as when a journal
// says which flight landed first the last time.
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

// parallelFuncs is what the parallel module's prelude needs of this engine.
func parallelFuncs() []lua.Reg {
	return []lua.Reg{
		{Name: "__adopt", Fn: adoptTask},
		{Name: "__flight", Fn: flightOf},
		{Name: "__land", Fn: landFlight},
		{Name: "__abort", Fn: abortFlight},
		{Name: "__raise", Fn: raiseFrom},
	}
}

// adoptTask(thread, yes) says whether a coroutine is a task.
func adoptTask(c *lua.Call) error {
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

// flightOf(thread) is the number of the flight a task was suspended for, once.
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

// landFlight() waits for the next flight to land and gives its number, or nil
// when none is under way. Which one it is depends on the world, so that it
// passes the door like the time does.
func landFlight(c *lua.Call) error {
	f := flightsOf(c.State())
	env, _ := c.State().Stored(envKey{}).(*host.Env)
	if f == nil || env == nil {
		return nil
	}
	number, err := land(c.Context(), env, f.next)
	if err != nil {
		return raise(c, err)
	}
	if number != 0 {
		return c.Return(lua.Int(number))
	}
	return nil
}

// land tells which of several effects under way has ended next, by the number the
// engine gave it.
func land(ctx context.Context, env *host.Env, next func(context.Context) (int64, error)) (int64, error) {
	f := &host.Func{Name: "land", Kind: host.Nondeterministic, Effect: func(ctx context.Context, _ *host.Services, _ host.Args) ([]host.Value, error) {
		number, err := next(ctx)
		return []host.Value{number}, err
	}}
	values, err := env.Call(ctx, "parallel", f, nil)
	if err != nil || len(values) != 1 {
		return 0, err
	}
	number, _ := values[0].(int64)
	return number, nil
}

// abortFlight(number) cancels a flight nobody waits for any more.
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

// raiseFrom(thread, value, which) raises a task's error where it is waited for:
// with its cause, with the stack it happened on, and with which task it was.
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
	}
	return e
}

func threadAt(c *lua.Call) *lua.Thread {
	thread, _ := c.Arg(1).AsThread()
	return thread
}
