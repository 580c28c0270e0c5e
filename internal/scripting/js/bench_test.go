package js

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// warm returns an engine that is compiled and has an instance in its pool.
func warm(b *testing.B) *Engine {
	b.Helper()
	if _, err := shared.Run(b.Context(), Program{Source: "1"}, HostFuncs{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	return shared
}

func benchmarkRun(b *testing.B, p Program, host Host) {
	e := warm(b)
	for b.Loop() {
		if _, err := e.Run(b.Context(), p, host); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEmptyScript(b *testing.B) { benchmarkRun(b, Program{}, HostFuncs{}) }

func BenchmarkTypeScript(b *testing.B) {
	benchmarkRun(b, Program{Source: "interface A { n: number }\nconst a: A = {n: 1};\na.n"}, HostFuncs{})
}

func BenchmarkFreshInstance(b *testing.B) {
	e := newEngine(b, Options{PoolSize: -1})
	if err := e.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Run(b.Context(), Program{}, HostFuncs{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTenParallelCalls(b *testing.B) {
	host := HostFuncs{OnCall: func(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) { return args, nil }}
	benchmarkRun(b, Program{
		Source: "await Promise.all(Array.from({length: 10}, (_, i) => mcp.server.tool({i})))",
	}, host)
}

func BenchmarkSyncCall(b *testing.B) {
	host := HostFuncs{OnSync: func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }}
	p := Program{Source: "for (let i = 0; i < 1000; i++) now()", Funcs: []Func{{Name: "now", Sync: true}}}
	benchmarkRun(b, p, host)
}

func BenchmarkFibonacci(b *testing.B) {
	benchmarkRun(b, Program{Source: "const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2); fib(25)"}, HostFuncs{})
}

func BenchmarkMegabyteBothWays(b *testing.B) {
	rows := make([]string, 10_000)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"name":"row %d","tags":["a","b"],"price":%d.5,"note":"some text here"}`, i, i, i)
	}
	data := json.RawMessage("[" + strings.Join(rows, ",") + "]")
	host := HostFuncs{OnCall: func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return data, nil }}
	b.SetBytes(int64(2 * len(data)))
	benchmarkRun(b, Program{Source: "await mcp.a.b()", Limits: Limits{Output: 4 << 20, Time: time.Minute}}, host)
}

func BenchmarkSessionEval(b *testing.B) {
	s := warm(b).NewSession()
	for b.Loop() {
		if _, err := s.Eval(b.Context(), Program{Source: "n = (globalThis.n ?? 0) + 1"}, HostFuncs{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshotAndRestore(b *testing.B) {
	e := warm(b)
	s := e.NewSession()
	if _, err := s.Eval(b.Context(), Program{Source: "const rows = Array.from({length: 1000}, (_, i) => ({i, name: 'row ' + i})); 0"}, HostFuncs{}); err != nil {
		b.Fatal(err)
	}
	var size int
	for b.Loop() {
		saved, err := s.Snapshot(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := e.Restore(b.Context(), saved); err != nil {
			b.Fatal(err)
		}
		size = len(saved)
	}
	b.ReportMetric(float64(size), "bytes/snapshot")
}
