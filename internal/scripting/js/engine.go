package js

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// Options are the options of an Engine.
type Options struct {
	CacheDir string       // caches compiled code between processes; "" compiles in each, which takes a second
	Memory   int64        // memory of one script in bytes; 0 means 64 MiB
	PoolSize int          // instances held ready for the next script; 0 means 8, negative means none
	Log      *slog.Logger // nil discards
	// Count is told how many bytes of memory the instances take that exist, without what
	// scripts made them grow by: positive for a new one, negative when it is closed. May
	// be nil.
	Count func(bytes int64)

	// Modules exist in every realm before a script runs. They are part of the template,
	// so that they cost a script nothing.
	Modules []Module
}

// Module is a global object of every realm: functions of the host, and JavaScript on top
// of them.
type Module struct {
	Name  string // the object; "" makes the functions globals
	Funcs []Func // Name is the name in the object
	// Space makes every other path below the object an asynchronous function of
	// the host: with "mcp", mcp.files.read({…}) calls the host as "mcp.files.read".
	Space bool
	// Source is an expression: a function. It is called with the object, and with an
	// object that has all functions, including hidden ones, and helpers: inspect shows
	// any value as text, bytes converts text to bytes, placed adds the position of the
	// call to errors of an asynchronous function. "" means none.
	Source string
}

// Engine runs scripts, any number in parallel. Nothing is compiled before the first, or
// [Engine.Precompile].
type Engine struct {
	options  Options
	pool     pool
	underway tally // runs, and host calls that ignore ctx

	mu       sync.Mutex
	prepared *preparation // nil before the first use
	closed   bool
}

// Limits of Options.Memory: what the realm itself needs, and what 32 bits can address.
const (
	leastMemory = 4 << 20
	mostMemory  = 2 << 30
)

// NewEngine makes an engine. The caller closes it.
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
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{options: options, pool: pool{size: options.PoolSize}}, nil
}

// Close waits for runs and for host calls in progress, then frees everything. If ctx
// ends first, nothing is freed and the error says so.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	p := e.prepared
	ahead := p != nil && p.ahead
	e.mu.Unlock()
	if p != nil {
		p.stop(ctx, ahead)
	}
	if err := e.underway.wait(ctx); err != nil {
		return fmt.Errorf("close the JavaScript engine: scripts or their calls are still running: %w", err)
	}
	var errs []error
	for _, in := range e.pool.empty() {
		errs = append(errs, in.close(ctx))
	}
	if p != nil && p.machine != nil {
		errs = append(errs, p.machine.backend.close(ctx))
	}
	return errors.Join(errs...)
}

// Warm waits until scripts can run.
func (e *Engine) Warm(ctx context.Context) error {
	_, err := e.enter(ctx)
	if err == nil {
		e.underway.done()
	}
	return err
}

// enter returns the machine for a run, which ends with underway.done.
func (e *Engine) enter(ctx context.Context) (*machine, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "the JavaScript engine is closed")
	}
	e.underway.add()
	p := e.prepareLocked() //nolint:contextcheck // it goes on after this caller
	p.ahead = false
	e.mu.Unlock()
	var err error
	select {
	case <-p.done:
		if p.err == nil {
			return p.machine, nil
		}
		err = fault.Wrap(fault.Internal, p.err, "prepare JavaScript")
	case <-ctx.Done():
		err = fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "wait for the JavaScript engine")
	}
	e.underway.done()
	return nil, err
}

// Run runs a program once, in its own realm. The outcome has counts also if there is an
// error. Errors are faults: script_error with an *Error inside, timeout,
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

// Check checks whether a source is valid JavaScript or TypeScript, without running it.
// The error is that of Run.
func (e *Engine) Check(ctx context.Context, source, name string) error {
	m, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.underway.done()
	program := &Program{Source: source, Name: name}
	_, _, err = e.execute(ctx, m, m.template, &run{program: program, maps: sourceMaps{}, checking: true}, false)
	return err
}

// execute runs a program on an instance with the given image. If keep is set and the
// program was not stopped, it also returns the image after the run.
func (e *Engine) execute(ctx context.Context, m *machine, img *image, r *run, keep bool) (Outcome, *image, error) {
	r.limits = r.program.Limits.withDefaults(e.options.Memory)
	in, err := e.take(ctx, m, img, r.limits)
	if errors.Is(err, errNoGuestMemory) {
		return Outcome{}, nil, fault.New(fault.Limit, "the session holds %d bytes of memory, the script may have %d", img.size, r.limits.Memory).
			WithHint("raise the memory limit, or start a new session")
	}
	if denied := (*fault.Error)(nil); errors.As(err, &denied) {
		return Outcome{}, nil, err
	}
	if err != nil {
		return Outcome{}, nil, fault.Wrap(fault.Internal, err, "start a JavaScript instance")
	}
	defer e.put(ctx, m, in)
	ctx, cancel := r.limits.deadline(ctx)
	defer cancel()
	r.prepare(in, newWatch(ctx, r.limits), &e.underway)
	guest := in.bind(ctx)
	result, err := r.execute(guest)
	err = r.explain(ctx, err)
	cancel()
	r.calls.abandon()
	in.run = nil // the remaining work is short and is not stopped
	var left *image
	if keep && !r.watch.stopped() {
		left = r.imageAfter(guest, m.template, img)
	}
	return Outcome{Result: result, Calls: r.calls.made, Absent: r.absent, Memory: int64(in.memory.size)}, left, err
}

// imageAfter returns the image after a run, or nil if the instance broke.
func (r *run) imageAfter(ctx context.Context, template, before *image) *image {
	r.releaseRejections(ctx)
	if r.in.dead || r.in.scrub(ctx, template) != nil {
		return nil
	}
	return template.capture(r.in, before)
}

func (r *run) prepare(in *instance, w watch, underway *tally) {
	r.in, r.watch = in, w
	r.calls = newCalls(r.host, r.limits, underway)
	in.run = r
}

// take returns an instance filled with an image: one from the pool, or a new one.
func (e *Engine) take(ctx context.Context, m *machine, img *image, limits Limits) (*instance, error) {
	in, ready := e.pool.take()
	switch {
	case in == nil:
		var err error
		if in, err = newInstance(ctx, m.backend, m.limit); err != nil {
			return nil, err
		}
		if err := m.fill(in); err != nil {
			return nil, errors.Join(err, in.close(ctx))
		}
		e.count(int64(m.template.size))
	case !ready:
		m.wipe(in)
	}
	in.memory.limit = max(uint64(limits.Memory), m.template.size)
	in.memory.reserve = limits.take(ctx)
	if err := m.restore(in, img); err != nil {
		denied := in.memory.denied
		e.discard(ctx, m, in)
		return nil, cmp.Or(denied, err)
	}
	return in, nil
}

// put returns an instance to the pool. It closes a dead or grown one: memory cannot shrink,
// and the next script would have less of it.
func (e *Engine) put(ctx context.Context, m *machine, in *instance) {
	in.memory.reserve = nil
	if !in.dead && in.memory.size == m.template.size {
		taken, tidy := e.pool.put(in)
		if tidy {
			e.underway.run(func() { e.pool.tidy(m.wipe) })
		}
		if taken {
			return
		}
	}
	e.discard(ctx, m, in)
}

// discard closes an instance that take returned or the pool held.
func (e *Engine) discard(ctx context.Context, m *machine, in *instance) {
	_ = in.close(ctx) // closing memory cannot lose anything
	e.count(-int64(m.template.size))
}

// count tells the owner of the engine how much memory instances take.
func (e *Engine) count(bytes int64) {
	if e.options.Count != nil {
		e.options.Count(bytes)
	}
}

// take returns the function that takes memory from the reserve; nil without one.
func (l Limits) take(ctx context.Context) func(n uint64) error {
	if l.Reserve == nil {
		return nil
	}
	return func(n uint64) error {
		err := l.Reserve.Take(ctx, int64(n), true)
		if err != nil && ctx.Err() != nil {
			return fault.Wrap(fault.CodeOf(ctx.Err()), err, "wait for memory")
		}
		return err
	}
}
