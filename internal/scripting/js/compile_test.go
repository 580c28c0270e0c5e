package js

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// newInterpretedEngine makes an engine that has no machine code before compile is called.
func newInterpretedEngine(t *testing.T, options Options) (e *Engine, compile func()) {
	t.Helper()
	e = newEngine(t, options)
	c := &compilation{ready: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{})}
	e.interpret(t.Context(), c)
	c.cancel = sync.OnceFunc(func() {
		c.err = context.Canceled
		e.mu.Lock()
		defer e.mu.Unlock()
		close(c.done)
		close(c.ended)
	})
	e.compiling = c
	return e, func() {
		c.cancel = func() {}
		c.ready = make(chan struct{})
		e.compile(context.Background(), c)
	}
}

// limits gives the interpreter time.
func (p Program) slowly() Program {
	p.Limits.Time = time.Minute
	return p
}

// TestInterpretedUntilCompiled checks that scripts run while the engine compiles, with the
// same results, and in machine code afterwards.
func TestInterpretedUntilCompiled(t *testing.T) {
	t.Parallel()
	e, compile := newInterpretedEngine(t, Options{})
	if err := e.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	const source = "const a = await mcp.a.b(1); [a.name, Math.sin(1), 2 ** 0.5, [3, 1, 2].sort(), /b+/.exec('abbb')[0], new Date(0).toISOString(), 10n ** 30n + '']"
	for _, state := range []string{"interpreted", "compiled"} {
		got, err := e.Run(t.Context(), program(source).slowly(), testHost())
		want, wantErr := shared.Run(t.Context(), program(source).slowly(), testHost())
		if err != nil || wantErr != nil || string(got.Result) != string(want.Result) {
			t.Errorf("%s: got %s, %v, want %s, %v", state, got.Result, err, want.Result, wantErr)
		}
		if outdated := e.machine.backend.Load() != e.compiling.backend; outdated != (state == "interpreted") {
			t.Errorf("%s: interpreted %v", state, outdated)
		}
		if state == "interpreted" {
			compile()
		}
	}
	in, _ := e.pool.take()
	if in == nil || in.backend != e.compiling.backend {
		t.Errorf("the pool holds an instance of the interpreter")
	}
	e.pool.put(in)
}

// TestSessionOutlivesInterpreter checks that a session continues in machine code with what
// the interpreter left.
func TestSessionOutlivesInterpreter(t *testing.T) {
	t.Parallel()
	e, compile := newInterpretedEngine(t, Options{})
	s := e.NewSession()
	if _, err := s.Eval(t.Context(), program("let n = 20; const twice = () => n * 2").slowly(), testHost()); err != nil {
		t.Fatal(err)
	}
	compile()
	if got, err := s.Eval(t.Context(), program("n++; twice()").slowly(), testHost()); err != nil || string(got.Result) != "42" {
		t.Errorf("got %s, %v", got.Result, err)
	}
}

// TestRestartsInMachineCode checks that a script without effects starts again when there is
// machine code, and that one with effects does not.
func TestRestartsInMachineCode(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"script":   "let n = 0; for (;;) n++",
		"native":   "Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)",
		"too deep": "let d = 0; const o = {get x() { d++; return this.x }}; for (;;) try { o.x } catch (e) { `${e}` }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, compile := newInterpretedEngine(t, Options{})
			if err := func() error { _, err := e.enter(t.Context()); e.underway.done(); return err }(); err != nil {
				t.Fatal(err)
			}
			r := &run{program: &Program{Source: source, Limits: Limits{Time: time.Minute}}, host: testHost(), maps: sourceMaps{}}
			done := make(chan error, 1)
			go func() {
				_, _, err := e.attempt(t.Context(), e.machine, e.machine.template, r, false)
				done <- err
			}()
			compile()
			if <-done; !r.watch.again {
				t.Errorf("%s does not start again", name)
			}
		})
	}
}

// TestEffectsHappenOnce checks that a script which called a tool is not started again.
func TestEffectsHappenOnce(t *testing.T) {
	t.Parallel()
	e, compile := newInterpretedEngine(t, Options{})
	calls := 0
	host := HostFuncs{OnCall: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		calls++
		compile()
		return nil, nil
	}}
	got, err := e.Run(t.Context(), program("await mcp.a.b(); let n = 0; for (let i = 0; i < 30000; i++) n += i; n").slowly(), host)
	if err != nil || calls != 1 || string(got.Result) != "449985000" {
		t.Errorf("%d calls, %s, %v", calls, got.Result, err)
	}
}

// TestPrecompile checks that machine code is stored once, that the memory is freed, that
// the next script loads the code, and that damaged code does not stop scripts.
func TestPrecompile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	e, err := NewEngine(Options{CacheDir: folder})
	if err != nil {
		t.Fatal(err)
	}
	e.Precompile()
	e.mu.Lock()
	c := e.compiling
	e.mu.Unlock()
	<-c.ended
	if !e.cached() || e.compiling != nil {
		t.Errorf("stored: %v, still in memory: %v", e.cached(), e.compiling != nil)
	}
	stored, _ := filepath.Glob(filepath.Join(folder, "*", "*"))
	if len(stored) != 1 {
		t.Fatalf("stored files: %q", stored)
	}
	e.Precompile()
	if e.compiling != nil {
		t.Error("compiles again")
	}
	if err := e.Warm(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile(stored[0])
	if err == nil {
		content[len(content)/2] ^= 1
		err = os.WriteFile(stored[0], content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e, err = NewEngine(Options{CacheDir: folder}); err != nil {
		t.Fatal(err)
	}
	if err := e.Warm(t.Context()); err != nil {
		t.Errorf("with damaged code: %v", err)
	}
	if got, err := e.Run(t.Context(), program("6 * 7"), testHost()); err != nil || string(got.Result) != "42" {
		t.Errorf("with damaged code: got %s, %v", got.Result, err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
