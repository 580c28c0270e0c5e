package js

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// compressed is QuickJS as WebAssembly: qjs-wasi.wasm of the module go-quickjs-wasi-reactor,
// which would add a megabyte more to the program, changed so that it can be stopped. A test
// changes it, and holds this file against what it makes: see rewrite_test.go.
//
//go:embed quickjs.wasm.gz
var compressed []byte

// Imports that the sandbox never serves carry our own calls, so that nothing in the module
// has to be renumbered. Only their signatures matter.
const (
	importCall   = "path_rename"             // (ctx, argc, argv, magic, 0, 0) i32s → address of a JSValue
	importPoll   = "path_unlink_file"        // (native, 0, 0) i32s → 1 to stop
	importReject = "path_filestat_set_times" // (handled, 0, 0, 0 i32s, promise, reason i64s, 0) → ignored
)

// Exports that were added.
const (
	exportStack = "__sp"    // the C stack pointer
	exportFloor = "__floor" // the lowest address the C stack may reach
)

// Functions that were added to the table, for use as C callbacks.
const (
	tableInterrupt = 580 + iota // a JSInterruptHandler that polls the host
	tableCall                   // a JSCFunctionMagic that calls the host
	tableReject                 // a JSHostPromiseRejectionTracker that notifies the host
)

// quickJS is the engine's WebAssembly. It is needed only until it is compiled.
func quickJS() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read the JavaScript engine: %w", err)
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the JavaScript engine: %w", err)
	}
	return wasm, nil
}

// checksum is the CRC-32 of the engine's WebAssembly, which gzip has at its end.
func checksum() uint32 { return binary.LittleEndian.Uint32(compressed[len(compressed)-8:]) }

// backend is the engine's WebAssembly as machine code, ready to be instantiated.
type backend struct {
	wasm     wazero.Runtime
	cache    wazero.CompilationCache // nil without a directory
	compiled wazero.CompiledModule
}

// newBackend compiles to machine code, or loads the code from a folder in which it was
// stored before. Where wazero has no compiler it interprets. It ends early with ctx. After
// an error nothing is left open.
func newBackend(ctx context.Context, folder string) (*backend, error) {
	wasm, err := quickJS()
	if err != nil {
		return nil, err
	}
	b := &backend{}
	config := wazero.NewRuntimeConfig() // region limits memory, and records that it did
	if folder != "" {
		if b.cache, err = wazero.NewCompilationCacheWithDir(folder); err != nil {
			return nil, fmt.Errorf("open the compilation cache: %w", err)
		}
		config = config.WithCompilationCache(b.cache)
	}
	// Only with several workers does compiling end with ctx.
	ctx = experimental.WithCompilationWorkers(ctx, max(2, runtime.GOMAXPROCS(0)))
	b.wasm = wazero.NewRuntimeWithConfig(ctx, config)
	if err = serveWASI(ctx, b.wasm); err == nil {
		b.compiled, err = b.wasm.CompileModule(ctx, wasm)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compile the JavaScript engine: %w", err), b.close(ctx))
	}
	return b, nil
}

// close releases everything; no instance may be in use.
func (b *backend) close(ctx context.Context) error {
	var errs []error
	if b.wasm != nil {
		errs = append(errs, b.wasm.Close(ctx))
	}
	if b.cache != nil {
		errs = append(errs, b.cache.Close(ctx))
	}
	return errors.Join(errs...)
}

// preparation makes the machine in the background.
type preparation struct {
	cancel  context.CancelFunc
	ahead   bool          // no script has asked for it yet; guarded by the engine's mu
	done    chan struct{} // closed when the following are valid
	machine *machine
	err     error
	ended   chan struct{} // closed when nothing of it runs any more
}

// prepareLocked returns the preparation, and starts it before the first use. The caller
// holds mu.
func (e *Engine) prepareLocked() *preparation {
	if e.prepared == nil {
		ctx, cancel := context.WithCancel(context.Background())
		e.prepared = &preparation{cancel: cancel, done: make(chan struct{}), ended: make(chan struct{})}
		go e.prepare(ctx, e.prepared)
	}
	return e.prepared
}

// prepare makes the machine. After an error the next script tries again.
func (e *Engine) prepare(ctx context.Context, p *preparation) {
	defer close(p.ended)
	defer p.cancel()
	stored := e.options.CacheDir != "" && e.cached()
	m, err := e.makeMachine(ctx)
	e.mu.Lock()
	unload := p.ahead && err == nil
	if unload || err != nil {
		e.prepared = nil
	}
	if p.err = err; !unload {
		p.machine = m
	}
	close(p.done)
	e.mu.Unlock()
	if unload {
		_ = m.backend.close(context.WithoutCancel(ctx)) // closing memory cannot lose anything
	}
	if !stored {
		debug.FreeOSMemory() // compiling takes a hundred times what the server needs when it is idle
	}
}

// makeMachine compiles with the cache, or without it if that fails, and builds the machine.
func (e *Engine) makeMachine(ctx context.Context) (*machine, error) {
	b, err := newBackend(ctx, e.options.CacheDir)
	switch {
	case err == nil:
		e.markCached()
	case ctx.Err() == nil && e.options.CacheDir != "": // the cache is damaged or cannot be written
		e.options.Log.WarnContext(ctx, "stored JavaScript engine not usable: compiling without it", "folder", e.options.CacheDir, "error", err)
		b, err = newBackend(ctx, "")
	}
	if err != nil {
		return nil, err
	}
	return newMachine(ctx, b, e.options)
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
	if e.closed || e.prepared != nil {
		return
	}
	e.prepareLocked().ahead = true
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

// stop ends the compiling: at once if no script has asked for it, otherwise when ctx ends,
// so that the next process finds machine code.
func (p *preparation) stop(ctx context.Context, ahead bool) {
	if !ahead {
		select {
		case <-p.done:
		case <-ctx.Done():
		}
	}
	p.cancel()
	<-p.ended
}
