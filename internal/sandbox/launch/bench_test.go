//go:build linux

package launch

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// BenchmarkStart runs a program that ends at once, without a sandbox and at each level, in
// turns. LUANETTE is the program that starts sandboxes; without it, that of the test.
func BenchmarkStart(b *testing.B) {
	l := &Launcher{Folder: b.TempDir(), Home: os.Getenv("HOME"), Executable: os.Getenv("LUANETTE")}
	l.Support() // found out once in a process
	took := map[profile.Level][]time.Duration{}
	for b.Loop() {
		for _, level := range []profile.Level{profile.Off, profile.Open, profile.Strict} {
			began := time.Now()
			c, err := l.Command(profile.Profile{Name: "true", Level: level}, Program{Path: "/bin/true", Args: []string{"true"}})
			if err == nil {
				err = c.Run()
			}
			if err != nil {
				b.Fatal(err)
			}
			took[level] = append(took[level], time.Since(began))
		}
	}
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for level, times := range took {
		slices.Sort(times)
		b.ReportMetric(milliseconds(times[0]), string(level)+"-best-ms")
		b.ReportMetric(milliseconds(times[len(times)/2]), string(level)+"-median-ms")
	}
}
