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

// measureStates tells what fresh states cost, what one costs that has run a
// small script, and what many idle ones hold.
func measureStates(w io.Writer) error {
	const script = "local function f(x) return x + 1 end count = f(count or 0) return count"
	for _, c := range []fresh{
		{"A fresh state with all libraries", lua.All(), ""},
		{"A fresh sandbox", lua.Sandboxed(), ""},
		{"A sandbox that has run a small script", lua.Sandboxed(), script},
	} {
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			var s *lua.State
			for b.Loop() {
				if err := c.make(&s); err != nil {
					b.Fatal(err)
				}
			}
		})
		held, err := c.hold()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %.1f µs, %d bytes in %d allocations; %d idle ones hold %.1f MiB.\n", c.what,
			float64(r.T.Microseconds())/float64(r.N), r.AllocedBytesPerOp(), r.AllocsPerOp(), idleStates, held)
	}
	return nil
}

// fresh is a way to make a state.
type fresh struct {
	what      string
	libraries []*lua.Library
	script    string // run in it, unless empty
}

func (f fresh) make(s **lua.State) error {
	*s = lua.New(lua.Options{Seed: 1})
	if err := (*s).Open(f.libraries...); err != nil || f.script == "" {
		return err
	}
	chunk, err := (*s).Load(f.script, "=script")
	if err != nil {
		return err
	}
	_, err = (*s).Call(context.Background(), chunk.Value())
	return err
}

// hold returns the MiB that idle states hold on the heap.
func (f fresh) hold() (float64, error) {
	states := make([]*lua.State, idleStates)
	before := heap()
	for i := range states {
		if err := f.make(&states[i]); err != nil {
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
