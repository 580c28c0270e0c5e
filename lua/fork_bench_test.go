package lua

import (
	"testing"
)

// smallSession is what a conversation with a few definitions leaves behind.
const smallSession = `
	results = {} for i = 1, 20 do results[i] = {id = i, name = "item " .. i, tags = {"a", "b"}} end
	function find(name) for _, r in ipairs(results) do if r.name == name then return r end end end
	function rename(id, name) results[id].name = name end
	pages = coroutine.wrap(function() for _, r in ipairs(results) do coroutine.yield(r) end end) pages()`

// largeSession holds about a megabyte of tables.
const largeSession = `
	rows = {} for i = 1, 2500 do rows[i] = {id = i, name = "row number " .. i, score = i / 3, tags = {"x" .. i, "y"}} end`

func benchmarkState(b *testing.B, source string) *State {
	b.Helper()
	s := New(Options{Seed: 1})
	if err := s.Open(Sandboxed()...); err != nil {
		b.Fatal(err)
	}
	if _, err := run(s, source, "=session"); err != nil {
		b.Fatal(err)
	}
	s.account.memory = s.collect()
	return s
}

func BenchmarkFork(b *testing.B) {
	for name, source := range map[string]string{"empty": "", "small": smallSession, "1MB": largeSession} {
		b.Run(name, func(b *testing.B) {
			s := benchmarkState(b, source)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Fork(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Usage().Memory), "state-bytes")
		})
	}
}
