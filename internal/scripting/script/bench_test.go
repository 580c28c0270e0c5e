package script

import "testing"

// BenchmarkEmptyRun measures a run in a fresh sandboxed state with every module.
func BenchmarkEmptyRun(b *testing.B) {
	r := newRunner(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Run(b.Context(), Request{Source: "return 1"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkToolCall measures one call from Lua to a tool of this process.
func BenchmarkToolCall(b *testing.B) {
	r := newRunner(b, func(o *Options) { o.Limits.Calls = 1 << 40; o.Limits.Time = 1 << 40 })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Run(b.Context(), Request{Source: "for i = 1, 1000 do mcp.calc.double{n = i} end"}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/call")
}
