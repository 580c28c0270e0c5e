package js

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Options are the choices for an Engine.
type Options struct {
	CacheDir string // keeps compiled code between processes; "" compiles in each, for a second
	Memory   int64  // bytes the memory of one script may have; 0 means 64 MiB
	PoolSize int    // instances kept ready for the next script; 0 means 8, less means none

	// Modules are in every realm before a script runs. They are in the template, so that
	// they cost a script nothing.
	Modules []Module
}

// Module is a global object of every realm: functions of the host, and what is written in
// JavaScript on top of them.
type Module struct {
	Name  string // the object; "" makes the functions globals
	Funcs []Func // Name is the name in the object
	// Space makes every other path below the object an asynchronous function of the host,
	// as with Program.Namespaces.
	Space bool
	// Source is an expression, a function. It is called with the object, and with an object
	// that has all functions, hidden ones too, and helpers of our own: inspect shows any
	// value as text, bytes makes bytes of text, placed has errors of an asynchronous
	// function tell where that was called. "" is none.
	Source string
}

// Engine runs scripts, any number at the same time. Nothing is compiled before the first.
type Engine struct {
	options  Options
	pool     pool
	underway tally // runs, and calls of hosts that did not listen

	mu      sync.Mutex
	machine *machine // nil before the first use
	broken  error    // why there is none, and will be none
	closed  bool
}

// Bounds of Options.Memory: what the realm itself needs, and what 32 bits can address.
const (
	leastMemory = 4 << 20
	mostMemory  = 2 << 30
)

// NewEngine makes an engine. Its caller closes it.
func NewEngine(options Options) (*Engine, error) {
	if options.Memory == 0 {
		options.Memory = 64 << 20
	}
	if options.Memory < leastMemory || options.Memory > mostMemory {
		return nil, fault.New(fault.Config, "the memory of JavaScript is %d bytes", options.Memory).
			WithHint("give it at least %d and at most %d", leastMemory, mostMemory)
	}
	options.Memory = (options.Memory + wasmPage - 1) / wasmPage * wasmPage
	if options.PoolSize == 0 {
		options.PoolSize = 8
	}
	return &Engine{options: options, pool: pool{size: options.PoolSize}}, nil
}

// Close waits for runs and for calls of hosts that are still under way, then frees
// everything. When ctx ends first, nothing is freed and the error says so.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	if err := e.underway.wait(ctx); err != nil {
		return fmt.Errorf("close the JavaScript engine: scripts or their calls are still running: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, in := range e.pool.empty() {
		errs = append(errs, in.close(ctx))
	}
	if e.machine != nil {
		errs = append(errs, e.machine.close(ctx))
		e.machine = nil
	}
	return errors.Join(errs...)
}

// Warm compiles the engine if that has not been done, so that the first script need not
// wait for it.
func (e *Engine) Warm(ctx context.Context) error {
	_, err := e.enter(ctx)
	if err == nil {
		e.underway.done()
	}
	return err
}

// enter gives the machine to a run, which leaves by underway.done.
func (e *Engine) enter(ctx context.Context) (*machine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fault.New(fault.Unavailable, "the JavaScript engine is closed")
	}
	if e.machine == nil && e.broken == nil {
		var err error
		if e.machine, err = newMachine(context.WithoutCancel(ctx), e.options); err != nil {
			e.machine, e.broken = nil, fault.Wrap(fault.Internal, err, "prepare JavaScript")
		}
	}
	if e.broken != nil {
		return nil, e.broken
	}
	e.underway.add()
	return e.machine, nil
}

// Run runs a program once, in a realm of its own. The outcome holds logs and counts also
// when there is an error. Errors are faults: script_error with an *Error inside, timeout,
// cancelled, limit_exceeded.
func (e *Engine) Run(ctx context.Context, program Program, host Host) (Outcome, error) {
	m, err := e.enter(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer e.underway.done()
	outcome, _, err := e.execute(ctx, m, m.template, &run{program: &program, host: host, maps: sourceMaps{}}, false)
	return outcome, err
}

// Check tells whether a source is JavaScript or TypeScript, and runs nothing of it. The
// error is that of Run.
func (e *Engine) Check(ctx context.Context, source, name string) error {
	m, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.underway.done()
	program := &Program{Source: source, Name: name}
	_, _, err = e.execute(ctx, m, m.template, &run{program: program, host: HostFuncs{}, maps: sourceMaps{}, checking: true}, false)
	return err
}

// execute runs a program on an instance with the given image. If keep is set and the
// program came to its own end, well or badly, it also gives the image it leaves.
func (e *Engine) execute(ctx context.Context, m *machine, img *image, r *run, keep bool) (Outcome, *image, error) {
	r.limits = r.program.Limits.withDefaults(e.options.Memory)
	in, err := e.take(ctx, m, img, uint64(r.limits.Memory))
	if errors.Is(err, errNoGuestMemory) {
		return Outcome{}, nil, fault.New(fault.Limit, "the session holds %d bytes of memory, the script may have %d", img.size, r.limits.Memory).
			WithHint("raise the memory limit, or start a new session")
	}
	if err != nil {
		return Outcome{}, nil, fault.Wrap(fault.Internal, err, "start a JavaScript instance")
	}
	defer e.put(ctx, m, in)
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, r.limits.Time, errTime)
	defer cancel()
	r.prepare(in, newWatch(ctx), &e.underway)
	guest := in.bind(ctx)
	result, err := r.execute(guest)
	err = r.explain(ctx, err)
	cancel()
	r.calls.abandon()
	in.run = nil // from here on nothing is stopped: it is our own work, and short
	var left *image
	if keep && !r.watch.stopped() {
		left = r.leave(guest, m.template, img)
	}
	return Outcome{
		Result: result, Logs: r.console.lines, Dropped: r.console.dropped,
		Calls: r.calls.made, Absent: r.absent, Memory: int64(in.memory.size), Took: time.Since(started),
	}, left, err
}

// leave gives the image that a run leaves behind, or nil if the instance broke.
func (r *run) leave(ctx context.Context, template, before *image) *image {
	r.releaseRejections(ctx)
	if r.in.dead || r.in.scrub(ctx, template) != nil {
		return nil
	}
	return template.capture(r.in, before)
}

func (r *run) prepare(in *instance, w watch, underway *tally) {
	r.in, r.watch = in, w
	r.console = console{room: r.limits.Logs}
	r.calls = newCalls(r.host, r.limits, underway)
	in.run = r
}

// take gives an instance filled with an image: one from the pool, or a new one.
func (e *Engine) take(ctx context.Context, m *machine, img *image, limit uint64) (*instance, error) {
	in, ready := e.pool.take()
	switch {
	case in == nil:
		var err error
		if in, err = newInstance(ctx, m.wasm, m.compiled, m.limit); err != nil {
			return nil, err
		}
		if err := m.furnish(in); err != nil {
			return nil, errors.Join(err, in.close(ctx))
		}
	case !ready:
		m.wipe(in)
	}
	in.memory.limit = max(limit, m.template.size)
	if err := m.restore(in, img); err != nil {
		return nil, errors.Join(err, in.close(ctx))
	}
	return in, nil
}

// put takes an instance back. One that is dead, or has grown, is of no use: memory cannot
// shrink, and would be lost to the next script.
func (e *Engine) put(ctx context.Context, m *machine, in *instance) {
	if !in.dead && in.memory.size == m.template.size {
		taken, tidy := e.pool.put(in)
		if tidy {
			e.underway.run(func() { e.pool.tidy(m.wipe) })
		}
		if taken {
			return
		}
	}
	_ = in.close(ctx) // nothing is flushed or lost by closing memory
}
