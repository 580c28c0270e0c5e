package js

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// patience is how long the first script waits for machine code before the interpreter
// runs it: enough to load stored code.
const patience = 150 * time.Millisecond

// compilation is the compiling in the background. Where no code is stored, it first makes
// the interpreter ready, so that no script waits longer than that takes.
type compilation struct {
	cancel  context.CancelFunc
	ready   chan struct{} // closed when the interpreter is ready
	spare   *machine      // interprets, until there is machine code; guarded by the engine's mu
	ahead   bool          // no script has asked for it yet; guarded by the engine's mu
	done    chan struct{}
	ended   chan struct{} // closed when nothing of it runs any more
	backend *backend      // valid after done, like the following
	table   rewritten     // of the backend
	err     error         // why there is no machine code: scripts are interpreted
}

// compileLocked returns the compilation, and starts it before the first use. The caller
// holds mu.
func (e *Engine) compileLocked() *compilation {
	if e.compiling == nil {
		ctx, cancel := context.WithCancel(context.Background())
		e.compiling = &compilation{cancel: cancel, ready: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{})}
		go e.compile(ctx, e.compiling)
	}
	return e.compiling
}

// compile compiles, and lets the next scripts use the machine code.
func (e *Engine) compile(ctx context.Context, c *compilation) {
	defer close(c.ended)
	defer c.cancel()
	stored := e.options.CacheDir != "" && e.cached()
	if !stored {
		e.interpret(ctx, c)
	}
	e.translate(ctx, c)
	e.mu.Lock()
	close(c.done)
	c.spare = nil
	e.adoptLocked(ctx, c)
	unload := c.ahead && e.machine == nil && e.entering == 0 && c.err == nil
	if unload {
		e.compiling = nil
	}
	e.mu.Unlock()
	if unload {
		_ = c.backend.close(context.WithoutCancel(ctx)) // closing memory cannot lose anything
		c.backend = nil
	}
	if !stored {
		debug.FreeOSMemory() // compiling takes a hundred times what the server needs when it is idle
	}
}

// translate compiles with the cache, or without it if that fails.
func (e *Engine) translate(ctx context.Context, c *compilation) {
	c.backend, c.table, c.err = newCompiled(ctx, e.options.CacheDir)
	switch {
	case c.err == nil:
		e.markCached()
	case ctx.Err() == nil && e.options.CacheDir != "": // the cache is damaged or cannot be written
		e.options.Log.WarnContext(ctx, "stored JavaScript engine not usable: compiling without it", "folder", e.options.CacheDir, "error", c.err)
		c.backend, c.table, c.err = newCompiled(ctx, "")
	}
	if c.err != nil {
		c.backend = nil
		if ctx.Err() == nil {
			e.options.Log.WarnContext(ctx, "JavaScript is interpreted: scripts are slow", "error", c.err)
		}
	}
}

// interpret makes a machine that interprets. An error is left to the first script.
func (e *Engine) interpret(ctx context.Context, c *compilation) {
	defer close(c.ready)
	b, table, err := newInterpreted(ctx)
	if err != nil {
		return
	}
	m, err := newMachine(ctx, b, table, e.options)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c.spare = m
}

// adoptLocked makes the machine use the machine code, if both exist. The interpreter is
// left to the garbage collector, as scripts may still run in it. The caller holds mu.
func (e *Engine) adoptLocked(ctx context.Context, c *compilation) {
	select {
	case <-c.done:
	default:
		return
	}
	if e.machine == nil || c.backend == nil {
		return
	}
	c.table = rewritten{} // no longer needed
	if e.machine.backend.Swap(c.backend) == c.backend {
		return
	}
	for _, in := range e.pool.empty() {
		_ = in.close(context.WithoutCancel(ctx)) // closing memory cannot lose anything
	}
}

// prepare returns the machine. The first caller builds it: from machine code if that is
// ready soon, otherwise from the interpreter.
func (e *Engine) prepare(ctx context.Context, c *compilation) (*machine, error) {
	wait := patience
	if e.options.CacheDir == "" || !e.cached() {
		wait = time.Minute // the interpreter is being made ready: a second one would not be sooner
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-c.ready:
	case <-timer.C:
	case <-ctx.Done():
		return nil, fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "wait for the JavaScript engine")
	}
	e.building.Lock()
	defer e.building.Unlock()
	e.mu.Lock()
	m := e.machine
	e.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m, err := e.build(context.WithoutCancel(ctx), c)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "prepare JavaScript")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine = m
	e.adoptLocked(ctx, c)
	return m, nil
}

// build builds the machine from what there is.
func (e *Engine) build(ctx context.Context, c *compilation) (*machine, error) {
	select {
	case <-c.done:
		if c.backend != nil {
			return newMachine(ctx, c.backend, c.table, e.options)
		}
	default:
	}
	e.mu.Lock()
	spare := c.spare
	e.mu.Unlock()
	if spare != nil {
		return spare, nil
	}
	b, table, err := newInterpreted(ctx)
	if err != nil {
		return nil, err
	}
	return newMachine(ctx, b, table, e.options)
}

// Precompile compiles in the background and stores the machine code in Options.CacheDir,
// unless it is there already. Unless a script came meanwhile, it then frees the memory
// again: loading stored code takes a tenth of a second.
func (e *Engine) Precompile() {
	if e.options.CacheDir == "" || e.cached() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.compiling != nil {
		return
	}
	e.compileLocked().ahead = true
}

// marker names a file that exists if machine code of this module was stored. It may be
// wrong on another processor: then the first script finds no code, and waits as it would
// on the first start.
func (e *Engine) marker() string {
	return filepath.Join(e.options.CacheDir, fmt.Sprintf("engine-%08x", checksum()))
}

func (e *Engine) cached() bool {
	_, err := os.Stat(e.marker())
	return err == nil
}

func (e *Engine) markCached() {
	if e.options.CacheDir != "" {
		_ = os.WriteFile(e.marker(), nil, 0o600) // without it the next start compiles again
	}
}

// stop ends the compiling: at once if no script has run, otherwise when ctx ends, so that
// the next process finds machine code.
func (c *compilation) stop(ctx context.Context, used bool) {
	if used {
		select {
		case <-c.done:
		case <-ctx.Done():
		}
	}
	c.cancel()
	<-c.ended
}
