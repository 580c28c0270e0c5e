//go:build unix

package command

import (
	"encoding/json"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
)

// BenchmarkCall compares a call of a tool with the same program run by os/exec alone. It
// reports the CPU time of both, that of the programs included, and their ratio.
func BenchmarkCall(b *testing.B) {
	opened, err := Open(b.Context(), api.Environment{Name: "tools", Settings: api.Settings{Kind: api.Command, Commands: map[string]api.CommandTool{
		"say": {Args: line("printf", "%s\\n", "{{words...}}"), Output: api.OutputLines, MaxBytes: 1 << 20, Timeout: time.Minute},
	}}})
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	call := api.Call{Tool: "say", Arguments: json.RawMessage(`{"words":["one","two","three"]}`), Progress: func(float64, float64, string) {}}
	var tool, bare time.Duration
	for b.Loop() {
		tool += cpuOf(b, func() error {
			_, err := opened.Call(b.Context(), call)
			return err
		})
		bare += cpuOf(b, func() error {
			_, err := exec.CommandContext(b.Context(), "printf", "%s\\n", "one", "two", "three").Output()
			return err
		})
	}
	b.ReportMetric(float64(tool.Microseconds())/float64(b.N*batch), "µs-CPU/call")
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N*batch), "µs-CPU/bare")
	b.ReportMetric(float64(tool)/float64(bare), "ratio")
}

// batch is how often something is done between two looks at the clock of the CPU, which
// is coarse.
const batch = 50

func cpuOf(b *testing.B, do func() error) time.Duration {
	b.Helper()
	before := cpu(b)
	for range batch {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	return cpu(b) - before
}

// cpu is the CPU time of this process and of the programs that it ran.
func cpu(b *testing.B) (total time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}
