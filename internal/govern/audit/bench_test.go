package audit_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

var args = []byte(`{"path":"/tmp/x","text":"hello"}`)

// record records a relayed call.
func record(ctx context.Context, l *audit.Log, subject string) {
	d := audit.Entry{
		Who: "key:web", Name: "web", Client: "3f1c9a52e3b14a71", Action: audit.Call, Subject: subject, Args: audit.Digest(args),
		Decision: "allow", Rule: "policy[3]", Size: 512, Took: 183,
	}
	d.Trace, d.Request = rand.Text(), rand.Text()[:16]
	l.Record(ctx, d)
}

// BenchmarkWrite measures an entry from Record to the disk.
func BenchmarkWrite(b *testing.B) {
	l, err := audit.Open(b.Context(), dbtest.Open(b, dbtest.SQLite(b)), audit.Options{Node: "a"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	began := processorTime()
	for range b.N {
		record(b.Context(), l, "git.status")
	}
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(processorTime()-began)/float64(b.N), "cpu-ns/op")
}

// processorTime is the CPU time of this process in nanoseconds.
func processorTime() int64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return used.Utime.Nano() + used.Stime.Nano()
}

// BenchmarkFind searches a million entries: for a rare tool, the newest, and those of one principal.
func BenchmarkFind(b *testing.B) {
	d := dbtest.Open(b, dbtest.SQLite(b))
	l, err := audit.Open(b.Context(), d, audit.Options{Node: "a"})
	if err != nil {
		b.Fatal(err)
	}
	const entries = 1_000_000
	for i := range entries {
		if i%(entries/10) == 1000 {
			record(b.Context(), l, "git.rare")
		} else {
			record(b.Context(), l, fmt.Sprintf("git.tool_%d", i%50))
		}
	}
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]audit.Filter{"rare": {Tool: "git.rare"}, "newest": {}, "who": {Who: "web", Limit: 1000}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list, err := l.Find(b.Context(), f); err != nil || len(list) < 10 {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}
