package js

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/luanette/luanette/internal/base/fault"
)

// evalAll runs sources in a session and returns the last result.
func evalAll(t *testing.T, s *Session, sources ...string) string {
	t.Helper()
	var last string
	for _, source := range sources {
		got, err := s.Eval(t.Context(), program(source), testHost())
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		last = string(got.Result)
	}
	return last
}

func TestSessionKeepsDefinitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sources []string
		want    string
	}{
		"let const var function class": {
			[]string{"let a = 1; const b = 2; var c = 3; function f() { return a + b + c } class K { m() { return f() } }", "a = 10; new K().m()"},
			"15",
		},
		"assigned globals":             {[]string{"x = {n: 1}", "x.n++", "x"}, `{"n":2}`},
		"declared again":               {[]string{"const r = 1", "const r = 2", "let r = 3; r"}, "3"},
		"two declared again":           {[]string{"let a = 1, b = 2", "const a = 3, b = 4; [a, b]"}, "[3,4]"},
		"functions see the new one":    {[]string{"let a = 1; function f() { return a }", "let a = 2", "f()"}, "2"},
		"across await":                 {[]string{"const v = await mcp.a.b(1)", "v.args"}, "[1]"},
		"TypeScript":                   {[]string{"type T = {n: number}; const t: T = {n: 4}", "const u: number = t.n; u * 2"}, "8"},
		"closures":                     {[]string{"const counter = (() => { let n = 0; return () => ++n })()", "counter(); counter()", "counter()"}, "3"},
		"result does not stick":        {[]string{"__result__ = 1", "2"}, "2"},
		"changed built-ins stay":       {[]string{"Array.prototype.last = function () { return this[this.length - 1] }", "[1, 2].last()"}, "2"},
		"generators":                   {[]string{"function* g() { yield 1; yield 2 }; const it = g(); it.next()", "it.next().value"}, "2"},
		"what JSON lacks is text":      {[]string{"[function f() {}, Symbol('x'), 0/0, { g: () => 1 }]"}, `["[function f]","Symbol(x)","NaN",{"g":"[function g]"}]`},
		"a function":                   {[]string{"() => 1"}, `"[function ]"`},
		"what contains itself":         {[]string{"const o = {}; o.o = o; o"}, `"{ o: [circular] }"`},
		"a pending promise of its own": {[]string{"let done; const p = new Promise(r => { done = r }); 0", "done(5); await p"}, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := evalAll(t, shared.NewSession(), c.sources...); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSessionErrors(t *testing.T) {
	t.Parallel()
	s := shared.NewSession()
	p := program("let n: number = 1;\nfunction broken() {\n  n++;\n  return null.x;\n}")
	p.Name = "first.ts"
	if _, err := s.Eval(t.Context(), p, testHost()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Eval(t.Context(), program("broken()"), testHost())
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *js.Error", err)
	}
	want := []Frame{{"broken", "first.ts", 4, 3}, {"", "eval-2.js", 1, 1}}
	if diff := cmp.Diff(want, e.Stack); diff != "" {
		t.Errorf("stack (-want +got):\n%s", diff)
	}
	if got := evalAll(t, s, "n"); got != "2" {
		t.Errorf("n is %s: a script that fails keeps what it did", got)
	}
	_, err = s.Eval(t.Context(), program("const broken = 1"), testHost())
	if fault.CodeOf(err) != fault.Script || fault.HintOf(err) == "" {
		t.Errorf("got %v, want a script_error with a hint", err)
	}
}

// TestForgedRedeclaration checks that a script that throws the engine's redeclaration error
// itself is not run again after it had effects, and not forever.
func TestForgedRedeclaration(t *testing.T) {
	t.Parallel()
	s := shared.NewSession()
	got, err := s.Eval(t.Context(), program("mcp.a.b(); throw new SyntaxError(\"redeclaration of 'x'\")"), testHost())
	if fault.CodeOf(err) != fault.Script || got.Calls != 1 {
		t.Errorf("got %v after %d calls, want a script_error after 1", err, got.Calls)
	}
	p := program("globalThis.n ??= 0; throw new SyntaxError(`redeclaration of '${n++}'`)")
	p.Limits.Time = 50 * time.Millisecond
	if _, err := s.Eval(t.Context(), p, testHost()); err == nil {
		t.Error("no error")
	}
}

// TestStoppedEvalLeavesSession checks that a stopped script leaves the session
// unchanged, however it was stopped.
func TestStoppedEvalLeavesSession(t *testing.T) {
	t.Parallel()
	s := shared.NewSession()
	evalAll(t, s, "let n = 1; const big = []")
	for name, source := range map[string]string{
		"loop":   "n = 2; for (;;) {}",
		"native": "n = 3; Array.prototype.indexOf.call({length: 2 ** 52}, 1)",
		"flood":  "n = 4; const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})",
		"call":   "n = 5; await mcp.a.hang()",
	} {
		p := program(source)
		p.Limits.Time = 20 * time.Millisecond
		if _, err := s.Eval(t.Context(), p, testHost()); fault.CodeOf(err) != fault.Timeout {
			t.Errorf("%s: got %v, want a timeout", name, err)
		}
		if got := evalAll(t, s, "n"); got != "1" {
			t.Errorf("%s: n is %s, want 1", name, got)
		}
	}
}

func TestSessionLargerThanItsLimit(t *testing.T) {
	t.Parallel()
	s := shared.NewSession()
	evalAll(t, s, "const data = new Uint8Array(8e6); 0")
	p := program("data.length")
	p.Limits.Memory = 4 << 20
	if _, err := s.Eval(t.Context(), p, testHost()); fault.CodeOf(err) != fault.Limit {
		t.Errorf("got %v, want limit_exceeded", err)
	}
	if got := evalAll(t, s, "data.length"); got != "8000000" {
		t.Errorf("got %s", got)
	}
}

// TestSnapshotProperty checks that a restored session gives the same results.
func TestSnapshotProperty(t *testing.T) {
	t.Parallel()
	other := newEngine(t, Options{}) // restores what another engine saved
	steps := []string{
		"let n = 0", "var n2 = 1; n2", "n = (globalThis.n ?? 0) + 1", "list = [...(globalThis.list ?? []), 'x'.repeat(100)]",
		"function f(a) { return a + 1 }; f(1)", "map = new Map([[1, {deep: [1, 2, 3n]}]])", "throw new Error('x')",
		"blob = new Uint8Array(100000).fill(7); blob.length", "const k = await mcp.a.b(1); k.args", "class C { #p = 4; get p() { return this.#p } }; c = new C(); c.p",
	}
	probe := "JSON.stringify(Object.keys(globalThis).sort()) + String(globalThis.list) + [...(globalThis.map ?? [])].join() + globalThis.c?.p + globalThis.blob?.reduce((a, b) => a + b, 0)"
	rapid.Check(t, func(r *rapid.T) {
		s := shared.NewSession()
		for i, step := range rapid.SliceOfN(rapid.SampledFrom(steps), 0, 6).Draw(r, "steps") {
			p := program(step)
			p.Name = fmt.Sprintf("step-%d.js", i)
			_, err := s.Eval(t.Context(), p, testHost())
			if err != nil && fault.CodeOf(err) != fault.Script {
				r.Fatal(err)
			}
		}
		saved, err := s.Snapshot(t.Context())
		if err != nil {
			r.Fatal(err)
		}
		restored, err := other.Restore(t.Context(), saved)
		if err != nil {
			r.Fatal(err)
		}
		if got, want := evalAll(t, restored, probe), evalAll(t, s, probe); got != want {
			r.Errorf("restored it gives %s, want %s", got, want)
		}
	})
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	s := shared.NewSession()
	evalAll(t, s, "let n = 1")
	saved, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alien := bytes.Clone(saved)
	alien[len(snapshotMagic)] ^= 1
	changed := bytes.Clone(saved)
	changed[len(changed)/2] ^= 1
	for name, c := range map[string]struct {
		bytes []byte
		code  fault.Code
	}{
		"nothing":       {nil, fault.InvalidParams},
		"something":     {[]byte("LNJS\x03 something else"), fault.InvalidParams},
		"another build": {alien, fault.Conflict},
		"changed":       {changed, fault.Conflict},
		"cut":           {saved[:len(saved)/2], fault.Conflict},
		"only a head":   {saved[:len(snapshotMagic)+32], fault.InvalidParams},
	} {
		if _, err := shared.Restore(t.Context(), c.bytes); fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
}

func TestSessionsAreSmallAtRest(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"almost empty":        "let n = 1; function f() { return n }",
		"data let go of":      "let data = Array.from({length: 1e5}, (_, i) => ({i, s: 'row ' + i})); data = data.length",
		"large result":        "'x'.repeat(3e6)",
		"failing":             "throw new Error('x')",
		"unhandled rejection": "Promise.reject(new Error('x'))",
		"calls":               "await Promise.all([mcp.a.b(), mcp.a.b()])",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared.NewSession()
			for range 5 {
				_, err := s.Eval(t.Context(), program(source), testHost())
				if code := fault.CodeOf(err); err != nil && code != fault.Script && code != fault.Limit {
					t.Fatal(err)
				}
			}
			if size := len(s.image.pages) * pageSize; size == 0 || size > 512<<10 {
				t.Errorf("the session holds %d bytes", size)
			}
		})
	}
}
