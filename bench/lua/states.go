package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/luanette/luanette/lua"
)

// idleStates is the number of idle states.
const idleStates = 10_000

// printStates measures states in a process of its own.
func printStates(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, self, "-role", "states")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// measureStates measures new states, states that have run a small script, and the memory
// of many idle ones.
func measureStates(w io.Writer) error {
	const script = "local function f(x) return x + 1 end count = f(count or 0) return count"
	for _, c := range []fresh{
		{"A fresh state with all libraries", lua.All(), ""},
		{"A fresh sandbox", lua.Sandboxed(), ""},
		{"A sandbox that has run a small script", lua.Sandboxed(), script},
	} {
		cost, err := c.measure()
		if err != nil {
			return err
		}
		held, err := c.hold()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %.1f µs of CPU time, %d bytes in %d allocations; %d idle ones hold %.1f MiB.\n",
			c.what, cost.time.Seconds()*1e6, cost.bytes, cost.allocations, idleStates, held)
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

// cost is the cost of making one state, including garbage collection.
type cost struct {
	time               time.Duration
	bytes, allocations uint64
}

// measure makes many states, one after the other.
func (f fresh) measure() (cost, error) {
	const rounds = 50_000
	var s *lua.State
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := processorTime()
	for range rounds {
		if err := f.make(&s); err != nil {
			return cost{}, err
		}
	}
	spent := processorTime() - start
	runtime.ReadMemStats(&after)
	return cost{
		time: spent / rounds, bytes: (after.TotalAlloc - before.TotalAlloc) / rounds, allocations: (after.Mallocs - before.Mallocs) / rounds,
	}, nil
}

// processorTime is the CPU time of this process so far, user and system.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail with these arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
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
