package audit

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func call(i int) Entry {
	d := Entry{
		At:  time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Millisecond),
		Who: "key:web", Name: "web", Client: "3f1c9a52e3b14a71", Action: Call, Subject: "git.tool_" + strconv.Itoa(i%50), Args: Digest([]byte(`{"path":"/tmp/x"}`)),
		Decision: "allow", Rule: "policy[3]", Size: 512, Took: 183,
	}
	if i%20_000 == 1000 {
		d.Subject = "git.rare"
	}
	d.Trace, d.Request = rand.Text(), rand.Text()[:16]
	return d
}

// openFor opens a store in a fresh database, without injected faults.
func openFor(b *testing.B, fresh func(testing.TB) string) *Store {
	b.Helper()
	d := dbtest.OpenWith(b, fresh(b), db.Options{})
	s, err := OpenStore(b.Context(), d)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// cpuTime is the CPU time of this process and of the Postgres server, in nanoseconds.
func cpuTime(b *testing.B, d *db.DB) int64 {
	b.Helper()
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	total := used.Utime.Nano() + used.Stime.Nano()
	if d.Kind() != db.Postgres {
		return total
	}
	var pids []int64
	pids, err := db.Find(b.Context(), d, db.Column[int64], "SELECT pid FROM pg_stat_activity")
	if err != nil {
		b.Fatal(err)
	}
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		user, _ := strconv.ParseInt(fields[11], 10, 64)
		system, _ := strconv.ParseInt(fields[12], 10, 64)
		total += (user + system) * 10_000_000
	}
	return total
}

var databases = map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres}

// BenchmarkAdd measures one transaction of so many entries: 1 is an idle node, 16 is
// 160 calls a second, 256 a busy node.
func BenchmarkAdd(b *testing.B) {
	for kind, fresh := range databases {
		for _, batch := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("%s/%d", kind, batch), func(b *testing.B) {
				s := openFor(b, fresh)
				entries := make([]Entry, batch)
				for i := range entries {
					entries[i] = call(i)
				}
				b.ResetTimer()
				began := cpuTime(b, s.db)
				for n := range b.N {
					for i := range entries {
						entries[i].At = entries[i].At.Add(time.Duration(batch) * time.Millisecond * time.Duration(min(n, 1)))
					}
					if err := s.add(context.Background(), "a", entries); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(cpuTime(b, s.db)-began)/float64(b.N*batch), "cpu-ns/entry")
			})
		}
	}
}

// BenchmarkSearch searches 200,000 entries: for a rare tool, the newest, and those of
// one principal. It also reports the size of an entry on disk.
func BenchmarkSearch(b *testing.B) {
	const entries = 200_000
	for kind, fresh := range databases {
		s := openFor(b, fresh)
		for i := 0; i < entries; i += 250 {
			some := make([]Entry, 250)
			for j := range some {
				some[j] = call(i + j)
			}
			if err := s.add(context.Background(), "a", some); err != nil {
				b.Fatal(err)
			}
		}
		for name, f := range map[string]Filter{"rare": {Tool: "git.rare"}, "newest": {}, "who": {Who: "web", Limit: 1000}, "verify": {}} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				began := cpuTime(b, s.db)
				for b.Loop() {
					if name == "verify" {
						if found, err := s.Verify(b.Context()); err != nil || found[0].Entries != entries {
							b.Fatal(found, err)
						}
					} else if list, err := s.Find(b.Context(), f); err != nil || len(list) < 10 {
						b.Fatal(len(list), err)
					}
				}
				b.ReportMetric(float64(cpuTime(b, s.db)-began)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(diskSize(b, s.db))/entries, "disk-B/entry")
			})
		}
	}
}

func diskSize(b *testing.B, d *db.DB) (n int64) {
	b.Helper()
	query := `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`
	if d.Kind() == db.Postgres {
		query = `SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace`
	}
	if err := d.QueryRow(b.Context(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}
