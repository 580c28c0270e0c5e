package js

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// backend is the rewritten module, ready to be instantiated: as machine code, or for
// wazero's interpreter. Both build the same template and give the same results; the
// interpreter is ready several times sooner, and runs scripts tens of times slower.
type backend struct {
	wasm     wazero.Runtime
	cache    wazero.CompilationCache // nil without a directory
	compiled wazero.CompiledModule
}

// newCompiled compiles the module to machine code, or loads the code from a folder in
// which it was stored before. Where wazero has no compiler it interprets. It ends early
// with ctx.
func newCompiled(ctx context.Context, folder string) (*backend, rewritten, error) {
	b := &backend{}
	config := wazero.NewRuntimeConfig() // region limits memory, and records that it did
	if folder != "" {
		var err error
		if b.cache, err = wazero.NewCompilationCacheWithDir(folder); err != nil {
			return nil, rewritten{}, fmt.Errorf("open the compilation cache: %w", err)
		}
		config = config.WithCompilationCache(b.cache)
	}
	// Only with several workers does compiling end with ctx.
	table, err := b.load(experimental.WithCompilationWorkers(ctx, max(2, runtime.GOMAXPROCS(0))), config)
	return b, table, err
}

// newInterpreted prepares the module for the interpreter.
func newInterpreted(ctx context.Context) (*backend, rewritten, error) {
	b := &backend{}
	table, err := b.load(ctx, wazero.NewRuntimeConfigInterpreter())
	return b, table, err
}

// load reads the module for a runtime. After an error the backend is closed.
func (b *backend) load(ctx context.Context, config wazero.RuntimeConfig) (rewritten, error) {
	wasm, err := quickJS()
	if err != nil {
		return rewritten{}, errors.Join(err, b.close(ctx))
	}
	table, err := rewrite(wasm)
	if err != nil {
		return rewritten{}, errors.Join(err, b.close(ctx))
	}
	b.wasm = wazero.NewRuntimeWithConfig(ctx, config)
	if err = serveWASI(ctx, b.wasm); err == nil {
		b.compiled, err = b.wasm.CompileModule(ctx, table.bytes)
	}
	if err != nil {
		return rewritten{}, errors.Join(fmt.Errorf("compile the JavaScript engine: %w", err), b.close(ctx))
	}
	return table, nil
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
