package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/luanette/luanette/lua"
)

// idleStates is how many states are held at once.
const idleStates = 10_000

// printStates measures states in a process of their own, whose heap holds
// nothing else.
func printStates(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, self, "-role", "states")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// measureStates tells what a fresh state with all libraries costs, what one
// costs that has run a small script, and what many idle ones hold.
func measureStates(w io.Writer) error {
	for _, c := range []struct{ what, script string }{
		{"A fresh state with all libraries", ""},
		{"One that has run a small script", "local function f(x) return x + 1 end count = f(count or 0) return count"},
	} {
		if err := makeState(new(*lua.State), c.script); err != nil {
			return err
		}
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			var s *lua.State
			for b.Loop() {
				if err := makeState(&s, c.script); err != nil {
					b.Fatal(err)
				}
			}
		})
		held, err := holdStates(c.script)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %.1f µs, %d bytes in %d allocations; %d idle ones hold %.1f MiB.\n", c.what,
			float64(r.T.Microseconds())/float64(r.N), r.AllocedBytesPerOp(), r.AllocsPerOp(), idleStates, held)
	}
	return nil
}

func makeState(s **lua.State, script string) error {
	*s = lua.New(lua.Options{Seed: 1})
	if err := (*s).Open(lua.All()...); err != nil || script == "" {
		return err
	}
	chunk, err := (*s).Load(script, "=script")
	if err != nil {
		return err
	}
	_, err = (*s).Call(context.Background(), chunk.Value())
	return err
}

// holdStates returns the MiB that idle states hold on the heap.
func holdStates(script string) (float64, error) {
	states := make([]*lua.State, idleStates)
	before := heap()
	for i := range states {
		if err := makeState(&states[i], script); err != nil {
			return 0, err
		}
	}
	held := heap() - before
	runtime.KeepAlive(states)
	return float64(held) / (1 << 20), nil
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
