package js

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
)

// shared is the engine of most tests, cache the directory of compiled code for all of them:
// compiling is the expensive part.
var (
	shared *Engine
	cache  = jstest.Cache()
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if os.Getenv("UPDATE") != "" {
		if err = updateEngine(); err != nil {
			panic(err)
		}
	}
	if shared, err = NewEngine(Options{CacheDir: cache, Modules: testModules}); err != nil {
		panic(err)
	}
	if err := shared.Warm(context.Background()); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := shared.Close(context.Background()); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.Timeout)
	defer cancel()
	if !clocktest.Poll(ctx, func() bool { err = goleak.Find(); return err == nil }) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// newEngine makes an engine for one test.
func newEngine(tb testing.TB, options Options) *Engine {
	tb.Helper()
	options.CacheDir, options.Modules = cache, testModules
	e, err := NewEngine(options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// testHost answers "mcp.*" by echoing, fails for names that end in ".fail", and has a
// fixed clock and seed.
func testHost() HostFuncs {
	return HostFuncs{
		OnCall: func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
			switch {
			case name == "sleep":
				return nil, Sleep(ctx, args)
			case strings.HasSuffix(name, ".fail"):
				return nil, fault.New(fault.Upstream, "%s says no", name).WithHint("ask again")
			case strings.HasSuffix(name, ".hang"):
				<-ctx.Done()
				return nil, ctx.Err()
			case strings.HasSuffix(name, ".nothing"):
				return nil, nil
			case strings.HasSuffix(name, ".panic"):
				panic("oops")
			case strings.HasSuffix(name, ".garbage"):
				return json.RawMessage("{"), nil
			case strings.HasSuffix(name, ".big"):
				return json.RawMessage(`{"id":12345678901234567890,"n":[7,-9007199254740993],"s":"12345678901234567890","f":1e30}`), nil
			}
			return json.Marshal(map[string]any{"name": name, "args": args})
		},
		OnSync: func(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
			if strings.HasSuffix(name, ".fail") {
				return nil, fault.New(fault.Denied, "not for you")
			}
			return json.Marshal([]any{name, args})
		},
		OnNow:  func(context.Context) time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) },
		OnSeed: func(context.Context) uint64 { return 42 },
	}
}

// testModules are the environment that all tests share.
var testModules = []Module{
	{Name: "mcp", Space: true, Funcs: []Func{{Name: "version", Target: "mcp.version", Sync: true}}},
	{Name: "log", Funcs: []Func{{Name: "fail", Target: "log.fail", Sync: true}}},
	{Name: "tools", Funcs: []Func{{Name: "search", Target: "tools.search"}}},
	{Funcs: []Func{{Name: "echo", Sync: true}}, Source: "(global) => { global.params = { n: 3, list: [1, 2], id: 12345678901234567890n } }"},
}

func program(source string) Program {
	return Program{Source: source, Limits: Limits{Time: time.Minute}}
}

func TestResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, want string }{
		"last expression":             {"1 + 1", "2"},
		"after a declaration":         {"const x = {a: [1, 'b']}; x", `{"a":[1,"b"]}`},
		"return":                      {"if (true) { return 5 }\nreturn 6", "5"},
		"return with await":           {"return await Promise.resolve(7)", "7"},
		"global __result__":           {"__result__ = {ok: true}; 'ignored'", `{"ok":true}`},
		"lexical __result__":          {"const __result__ = 7; 6", "7"},
		"var __result__":              {"var __result__ = 8; 6", "8"},
		"undefined is absent":         {"undefined", ""},
		"a declaration has no value":  {"let x = 1", ""},
		"a function has no value":     {"(() => 1)", ""},
		"null":                        {"null", "null"},
		"top-level await":             {"const a = await Promise.resolve(2); a * 3", "6"},
		"a promise is awaited":        {"Promise.resolve(4)", "4"},
		"promises in promises":        {"(async () => (async () => 9)())()", "9"},
		"integers stay integers":      {"[1, 2.5, -0, 1e21, 2 ** 53]", "[1,2.5,0,1e+21,9007199254740992]"},
		"BigInt is an integer":        {"[10n ** 20n, {n: -5n}]", `[100000000000000000000,{"n":-5}]`},
		"BigInt with own toJSON":      {"BigInt.prototype.toJSON = function () { return 'big' }; 1n", `"big"`},
		"undefined in data":           {"({a: undefined, b: [undefined, null]})", `{"b":[null,null]}`},
		"bytes":                       {"[new Uint8Array([1, 255]), new Uint8Array([1, 255]).buffer]", `["Af8=","Af8="]`},
		"dates":                       {"new Date(0)", `"1970-01-01T00:00:00.000Z"`},
		"unicode":                     {"'ä€😀\\u2028'", "\"ä€😀\u2028\""},
		"lone surrogate":              {"'\\ud800'", `"\ud800"`},
		"empty script":                {"", ""},
		"only a comment":              {"// nothing", ""},
		"sloppy by default":           {"typeof this", `"object"`},
		"TypeScript":                  {"interface A { n: number }\nconst a: A = {n: 1};\na.n as number", "1"},
		"TypeScript enum":             {"enum E { A = 5 }\nE.A", "5"},
		"TypeScript generics":         {"function id<T>(x: T): T { return x }\nid<string>('q')", `"q"`},
		"TypeScript return":           {"const n: number = 2;\nreturn n + 1", "3"},
		"TypeScript return and await": {"const n: number = await 5; return n", "5"},
		"TypeScript import type":      {"import type { X } from 'x';\nlet x: number = 1; x", "1"},
		"params":                      {"params.n + params.list.length", "5"},
		"big params":                  {"params.id + 1n", "12345678901234567891"},
		"clock":                       {"[Date.now(), new Date().toISOString()]", `[1772600767000,"2026-03-04T05:06:07.000Z"]`},
		"recursion can be caught":     {"let n = 0; try { (function f() { n++; f() })() } catch (e) { [e instanceof RangeError, n > 500] }", "[true,true]"},
		"no timers, no network":       {"[typeof setTimeout, typeof fetch, typeof require, typeof process, typeof std, typeof os]", `["undefined","undefined","undefined","undefined","undefined","undefined"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := shared.Run(t.Context(), program(c.source), testHost())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got.Result)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, want string }{
		"namespace":                              {"mcp.files.read({path: 'x'})", `{"args":[{"path":"x"}],"name":"mcp.files.read"}`},
		"several arguments":                      {"mcp.a.b(1, 'two', null)", `{"args":[1,"two",null],"name":"mcp.a.b"}`},
		"no arguments":                           {"mcp.a.b()", `{"args":[],"name":"mcp.a.b"}`},
		"undefined argument":                     {"mcp.a.b(undefined)", `{"args":[null],"name":"mcp.a.b"}`},
		"odd names":                              {"mcp['my-server']['do.it']({n: 1n})", `{"args":[{"n":1}],"name":"mcp.my-server.do.it"}`},
		"no answer":                              {"const v = await mcp.a.nothing(); String(v)", `"undefined"`},
		"big integers come back":                 {"const v = await mcp.a.big(); [v, v.id + 1n, typeof v.n[0]]", `[{"id":12345678901234567890,"n":[7,-9007199254740993],"s":"12345678901234567890","f":1e+30},12345678901234567891,"number"]`},
		"errors can be caught":                   {"try { await mcp.a.fail() } catch (e) { [e instanceof Error, e.message, e.code, e.hint] }", `[true,"mcp.a.fail says no","upstream_error","ask again"]`},
		"panics are errors":                      {"mcp.a.panic().catch(e => e.message)", `"the function panicked: oops"`},
		"garbage is an error":                    {"mcp.a.garbage().catch(e => e.message)", `"the answer is not JSON"`},
		"cyclic arguments reject":                {"const o = {}; o.o = o; mcp.a.b(o).catch(e => e.name)", `"TypeError"`},
		"awaiting a namespace":                   {"const n = await mcp.files; typeof n.read", `"function"`},
		"namespace in a string":                  {"`${mcp.a.b}`", `"[mcp.a.b]"`},
		"namespace cannot be changed":            {"try { 'use strict'; mcp.a = 1; 'set' } catch (e) { e.message }", `"mcp cannot be changed"`},
		"function in a namespace":                {"mcp.version(1)", `["mcp.version",[1]]`},
		"synchronous":                            {"echo({a: 1}, 2n)", `["echo",[{"a":1},2]]`},
		"synchronous error":                      {"try { log.fail() } catch (e) { [e.message, e.code] }", `["not for you","permission_denied"]`},
		"dotted name":                            {"tools.search('x')", `{"args":["x"],"name":"tools.search"}`},
		"sleep":                                  {"await sleep(0); 'slept'", `"slept"`},
		"calls not awaited are done":             {"let n = 0; mcp.a.b().then(() => { n++; __result__ = n }); 'early'", "1"},
		"allSettled":                             {"const r = await Promise.allSettled([mcp.a.b(), mcp.a.fail()]); r.map(x => x.status)", `["fulfilled","rejected"]`},
		"race":                                   {"Promise.race([mcp.a.b(), mcp.c.d()]).then(x => x.name.length)", "7"},
		"broken built-ins break only the script": {"Promise.prototype.then = null; JSON.parse = null; Array.prototype.push = () => { throw 1 }; const v = await mcp.a.b(); v.name", `"mcp.a.b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := shared.Run(t.Context(), program(c.source), testHost())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got.Result)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		want   Error
	}{
		"thrown": {
			"let a = 1;\n\n  throw new TypeError('no')",
			Error{Name: "TypeError", Message: "no", Stack: []Frame{{"", "script.js", 3, 13}}},
		},
		"property of undefined": {
			"const items = undefined;\nconst n = items.length;",
			Error{Name: "TypeError", Message: "cannot read property 'length' of undefined", Stack: []Frame{{"", "script.js", 2, 1}}},
		},
		"inside functions": {
			"function outer() {\n  return inner()\n}\nfunction inner() {\n  null.x\n}\nouter()",
			Error{Name: "TypeError", Message: "cannot read property 'x' of null", Stack: []Frame{
				{"inner", "script.js", 5, 3}, {"outer", "script.js", 2, 10}, {"", "script.js", 7, 1},
			}},
		},
		"arrow body": {
			"[1].map(x =>\n  x.y.z)",
			Error{Name: "TypeError", Message: "cannot read property 'z' of undefined", Stack: []Frame{
				{"", "script.js", 2, 3}, {"", "script.js", 1, 9},
			}},
		},
		"with return": {
			"return nope",
			Error{Name: "ReferenceError", Message: "nope is not defined", Stack: []Frame{{"", "script.js", 1, 1}}},
		},
		"host error": {
			"const x = 1\nasync function f() {\n  await mcp.a.fail()\n}\nawait f()",
			Error{Name: "Error", Message: "mcp.a.fail says no", Code: "upstream_error", Hint: "ask again", Func: "mcp.a.fail", Stack: []Frame{
				{"f", "script.js", 3, 15}, {"", "script.js", 5, 7},
			}},
		},
		"not an error":      {"throw {a: 1}", Error{Message: "{ a: 1 }"}},
		"a string":          {"throw 'x'", Error{Message: "x"}},
		"TypeScript":        {"interface A {\n  n: number\n}\nconst a: A = {n: 1};\nconst b: any = (a as any).x.y;", Error{Name: "TypeError", Message: "cannot read property 'y' of undefined", Stack: []Frame{{"", "script.js", 5, 1}}}},
		"TypeScript return": {"const a: any = {};\nreturn a.x.y;", Error{Name: "TypeError", Message: "cannot read property 'y' of undefined", Stack: []Frame{{"", "script.js", 2, 1}}}},
		"syntax":            {"let a = 1;\nlet b = ;", Error{Name: "SyntaxError", Message: `Unexpected ";"`, Static: true, Stack: []Frame{{"", "script.js", 2, 9}}}},
		"syntax with types": {"let a: number = 1;\nlet b: = 2;", Error{Name: "SyntaxError", Message: `Unexpected "="`, Static: true, Stack: []Frame{{"", "script.js", 2, 8}}}},
		"import": {
			"\nimport fs from 'fs'\nfs.x", Error{
				Name: "SyntaxError", Message: "modules are not available: no import, no export", Static: true,
				Hint: "everything a script may use is global; leave out import and export", Stack: []Frame{{"", "script.js", 2, 1}},
			},
		},
		"import()": {
			"await import('fs')",
			Error{Name: "ReferenceError", Message: "could not load module 'fs'", Hint: "modules are not available; everything a script may use is global"},
		},
		"no timers": {
			"setTimeout(() => {}, 1)",
			Error{Name: "ReferenceError", Message: "setTimeout is not defined", Hint: "use await sleep(ms)", Stack: []Frame{{"", "script.js", 1, 1}}},
		},
		"unhandled rejection": {
			"async function f() {\n  throw new Error('lost')\n}\nf(); 1",
			Error{Name: "Error", Message: "lost", Stack: []Frame{{"f", "script.js", 2, 13}, {"", "script.js", 4, 1}}},
		},
		"microtask": {
			"queueMicrotask(() => { throw new Error('late') }); 1",
			Error{Name: "Error", Message: "late", Stack: []Frame{{"", "script.js", 1, 34}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := shared.Run(t.Context(), program(c.source), testHost())
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want a *js.Error", err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if code := fault.CodeOf(err); code != fault.Script {
				t.Errorf("code %s, want %s", code, fault.Script)
			}
			if fault.HintOf(err) != got.Hint {
				t.Errorf("hint %q, want %q", fault.HintOf(err), got.Hint)
			}
		})
	}
}

func TestUnconvertibleResult(t *testing.T) {
	t.Parallel()
	_, err := shared.Run(t.Context(), program("const o = {}; o.self = o; o"), testHost())
	if want := "convert the result to JSON: TypeError: circular reference"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStalled(t *testing.T) {
	t.Parallel()
	_, err := shared.Run(t.Context(), program("await new Promise(() => {})"), testHost())
	if want := "the script awaits a promise that is never settled"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// All calls must be in flight together, or the barrier never opens.
func TestCallsRunInParallel(t *testing.T) {
	t.Parallel()
	const n = 32
	var barrier sync.WaitGroup
	barrier.Add(n)
	host := testHost()
	host.OnCall = func(ctx context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
		barrier.Done()
		opened := make(chan struct{})
		go func() { barrier.Wait(); close(opened) }()
		select {
		case <-opened:
			return args, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p := program(fmt.Sprintf("const all = await Promise.all(Array.from({length: %d}, (_, i) => mcp.a.b(i))); all.flat().reduce((a, b) => a + b)", n))
	got, err := shared.Run(t.Context(), p, host)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Result) != "496" || got.Calls != n {
		t.Errorf("got %s after %d calls, want 496 after %d", got.Result, got.Calls, n)
	}
}

func TestParallelLimit(t *testing.T) {
	t.Parallel()
	const limit = 3
	var mu sync.Mutex
	now, most := 0, 0
	host := testHost()
	host.OnCall = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		return json.RawMessage("1"), nil
	}
	p := program("(await Promise.all(Array.from({length: 50}, () => mcp.a.b()))).length")
	p.Limits.Parallel = limit
	got, err := shared.Run(t.Context(), p, host)
	if err != nil || string(got.Result) != "50" {
		t.Fatalf("got %s, %v", got.Result, err)
	}
	if most > limit {
		t.Errorf("%d calls at a time, want at most %d", most, limit)
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	p := program(`console.log('a', 1, null, undefined, true, 5n, Symbol('s'))
		console.info({b: [1, {c: 'x'}], d: new Map([[1, 2]]), e: new Set(['q'])})
		console.warn(new TypeError('bad'), () => 1, new Date(0), /r/g)
		const o = {}; o.o = o; console.error(o)
		console.debug([[[[[[1]]]]]], new (class Point { x = 1 }))
		console.assert(false, 'why'); console.group('g'); console.groupEnd()
		Array.prototype.push = null; console.log({get a() { throw 1 }})`)
	var lines []string
	p.OnLine = func(l Line) { lines = append(lines, l.Level+": "+l.Text) }
	if _, err := shared.Run(t.Context(), p, testHost()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"log: a 1 null undefined true 5n Symbol(s)",
		`info: { b: [ 1, { c: "x" } ], d: Map { 1 => 2 }, e: Set { "q" } }`,
		"warn: TypeError: bad [function ] 1970-01-01T00:00:00.000Z /r/g",
		"error: { o: [circular] }",
		"debug: [ [ [ [ […] ] ] ] ] Point { x: 1 }",
		"error: assertion failed why", "log: g",
		"log: { a: [getter] }",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestRandomComesFromTheHost(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) string {
		host := testHost()
		host.OnSeed = func(context.Context) uint64 { return seed }
		got, err := shared.Run(t.Context(), program("[Math.random(), Math.random(), Math.random.name]"), host)
		if err != nil {
			t.Fatal(err)
		}
		return string(got.Result)
	}
	first, again, other := run(1), run(1), run(2)
	if first != again {
		t.Error("the same seed gave different numbers")
	}
	if first == other {
		t.Error("different seeds gave the same numbers")
	}
}

func TestFunctionsOfAProgram(t *testing.T) {
	t.Parallel()
	p := program("const r = await search_issues({q: 1}); [r.name, typeof Math.sin, r.args]")
	p.Funcs = []Func{{Name: "search_issues", Target: "mcp.github.search_issues"}, {Name: "Math", Target: "mcp.github.math"}}
	got, err := shared.Run(t.Context(), p, testHost())
	if err != nil {
		t.Fatal(err)
	}
	if want := `["mcp.github.search_issues","function",[{"q":1}]]`; string(got.Result) != want {
		t.Errorf("got %s, want %s", got.Result, want)
	}
}

func TestRunsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{PoolSize: 1})
	for range 3 {
		got, err := e.Run(t.Context(), program("const seen = typeof leak; globalThis.leak = 1; Array.prototype.leak = 2; seen + typeof [].leak2"), testHost())
		if err != nil || string(got.Result) != `"undefinedundefined"` {
			t.Fatalf("got %s, %v", got.Result, err)
		}
	}
}

func TestClosedEngine(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), program("1"), testHost()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, memory := range []int64{-1, 1, 8 << 30} {
		if _, err := NewEngine(Options{Memory: memory}); fault.CodeOf(err) != fault.Config {
			t.Errorf("memory %d: got %v, want invalid_config", memory, err)
		}
	}
}
